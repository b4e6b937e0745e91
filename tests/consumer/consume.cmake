# cmake -DWAY=find_package|fetch_content|add_subdirectory -DSOURCE=... -DBUILD=... -DSCRATCH=... -P consume.cmake
# Starts from nothing each time: a file that the install forgot must not be found from the last run.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
set(settings "-DWAY=${WAY}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCUDA_COMPILER=${CUDA_COMPILER}" "-DEIGEN=${EIGEN}"
  -DCMAKE_BUILD_TYPE=Release)
if(WAY STREQUAL "find_package")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix with space")
  list(PREPEND PREFIXES "${SCRATCH}/prefix with space")
else()
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
