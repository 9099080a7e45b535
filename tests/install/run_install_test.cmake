# Run as: cmake -DBUILD_DIR=... -DCXX_COMPILER=... -DSAMPLE_DIR=... -P run_install_test.cmake
#
# Installs the build into a fresh folder, builds the sample project against nothing but that folder,
# and runs it.

cmake_minimum_required(VERSION 3.25)

set(work ${BUILD_DIR}/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SAMPLE_DIR} -B ${work}/sample -G Ninja
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${work}/sample)
run(${work}/sample/sample)
