# cmake -DBUILD=... -DPREFIX=... -P install.cmake
# Starts from nothing each time: a file that the install forgot must not be found from the last run.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
