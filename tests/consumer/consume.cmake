# cmake -DWAY=find_package|fetch_content|add_subdirectory -DSOURCE=... -DSCRATCH=... -DPREFIXES=... -P consume.cmake
# Starts from nothing each time. find_package takes the package that install.cmake left in one of PREFIXES.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
set(settings "-DWAY=${WAY}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCUDA_COMPILER=${CUDA_COMPILER}" "-DEIGEN=${EIGEN}"
  -DCMAKE_BUILD_TYPE=Release)
if(NOT WAY STREQUAL "find_package")
  # What a user of the sources needs, and no more: a build that leans on tests/ or examples/ fails here.
  file(COPY "${SOURCE}/CMakeLists.txt" "${SOURCE}/include" "${SOURCE}/cuda" DESTINATION "${SCRATCH}/source with space")
  if(WAY STREQUAL "fetch_content")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E tar czf "${SCRATCH}/palimpsa.tar.gz" "source with space"
      WORKING_DIRECTORY "${SCRATCH}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
  list(APPEND settings "-DPALIMPSA_SOURCE=${SCRATCH}/source with space" "-DPALIMPSA_ARCHIVE=${SCRATCH}/palimpsa.tar.gz")
endif()
list(JOIN PREFIXES "\\;" prefixes)

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${SCRATCH}/build with space" -G "${GENERATOR}" ${settings}
  "-DCMAKE_PREFIX_PATH=${prefixes}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build with space")
run("${SCRATCH}/build with space/consumer")
run("${SCRATCH}/build with space/consumer_io")
if(WAY STREQUAL "find_package")
  run("${SCRATCH}/build with space/again/again")
endif()
