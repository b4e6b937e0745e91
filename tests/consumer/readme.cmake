# cmake -DREADME=... -DPREFIXES=... -DSCRATCH=... -DGENERATOR=... -DCOMPILER=... -DFLAGS=... -P readme.cmake
# The README's program and its CMake text, as a reader copies them into an empty folder, against the installed package.
cmake_minimum_required(VERSION 3.25)
file(READ "${README}" text)

# marked(<variable> <marker> <language>): the block of code below <!-- marker -->.
function(marked variable marker language)
  set(head "<!-- ${marker} -->\n```${language}\n")
  string(FIND "${text}" "${head}" first)
  if(first EQUAL -1)
    message(FATAL_ERROR "${README}: expected a block of ${language} below <!-- ${marker} -->, given none")
  endif()
  string(LENGTH "${head}" length)
  math(EXPR first "${first} + ${length}")
  string(SUBSTRING "${text}" ${first} -1 rest)
  string(FIND "${rest}" "\n```\n" length)
  string(SUBSTRING "${rest}" 0 ${length} block)
  set(${variable} "${block}\n" PARENT_SCOPE)
endfunction()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

marked(program program cpp)
marked(lists cmake cmake)
file(REMOVE_RECURSE "${SCRATCH}")
file(WRITE "${SCRATCH}/main.cpp" "${program}")
file(WRITE "${SCRATCH}/CMakeLists.txt" "${lists}")
list(JOIN PREFIXES "\\;" prefixes)
run("${CMAKE_COMMAND}" -S "${SCRATCH}" -B "${SCRATCH}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DCMAKE_PREFIX_PATH=${prefixes}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
execute_process(COMMAND "${SCRATCH}/build/memory" OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)

# Nine tenths of (3, -1), which is what the comment beside it says.
set(right "2.70 -0.90")
string(FIND "${program}" "// ${right}: " comment)
if(NOT said STREQUAL "${right}\n" OR comment EQUAL -1)
  message(FATAL_ERROR "the README's program: expected ${right}, printed and in the comment, given ${said}")
endif()
