# Run as: cmake -DBUILD_DIR=... -DCXX_COMPILER=... -DSOURCE_DIR=... -DVERSION=... [-DPACKAGES=ON]
#               -P run_install_test.cmake
#
# Installs the build into a fresh folder (PACKAGES: by Debian packages, which are unpacked there) and
# uses nothing but that folder: builds and runs the sample project, README's program by pkg-config,
# and the latter with the static library.

cmake_minimum_required(VERSION 3.25)

set(work ${BUILD_DIR}/install_test)
set(prefix ${work}/prefix)
if(PACKAGES)
  set(work ${BUILD_DIR}/package_test)
  set(prefix ${work}/root/usr)
endif()
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY
                  WORKING_DIRECTORY ${work})
endfunction()
# Runs a command and checks what it prints, errors included, whatever its status.
function(expect regex)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT WORKING_DIRECTORY ${work}
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "expected ${regex}, got:\n${output}")
  endif()
endfunction()

if(PACKAGES)
  run(cpack --config ${BUILD_DIR}/CPackConfig.cmake -B ${work})
  foreach(package IN ITEMS libtroupe libtroupe-dev troupe)
    file(GLOB file ${work}/${package}_*.deb)
    run(dpkg-deb --extract ${file} ${work}/root)
  endforeach()
  expect("Depends: .*libabsl.*libcaf-core.*libdnnl.*libprotobuf" dpkg-deb --info ${work}/libtroupe_${VERSION}_amd64.deb)
  expect("Depends: .*libtroupe [(]= ${VERSION}[)]" dpkg-deb --info ${work}/troupe_${VERSION}_amd64.deb)
  expect("Usage: troupe" ${prefix}/bin/troupe --help)
else()
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
endif()

# Nothing lies outside include/troupe, and no private header inside.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^troupe/" OR header MATCHES "/internal/|^troupe/actors/|cluster.pb.h")
    message(FATAL_ERROR "${header} is installed")
  endif()
endforeach()

function(build_project folder)
  run(${CMAKE_COMMAND} -S ${folder} -B ${folder}/build -G Ninja -DCMAKE_BUILD_TYPE=Debug
      -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_PREFIX_PATH=${prefix}
      -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  run(${CMAKE_COMMAND} --build ${folder}/build)
endfunction()

file(COPY ${SOURCE_DIR}/tests/install/sample DESTINATION ${work})
build_project(${work}/sample)
run(${work}/sample/build/sample)
expect("the actor says 42" ${work}/sample/build/actor)
# A library of another layout has another name.
string(REGEX MATCH "^[0-9]+[.][0-9]+" layout ${VERSION})
file(GLOB_RECURSE shared ${prefix}/libtroupe.so)
if(shared)
  expect("NEEDED +libtroupe.so.${layout}\n" objdump --private-headers ${work}/sample/build/sample)
endif()

set(line "^y = (2|1[.]9999)[^ ]* x [+] (1|0[.]9999)")
# README's program, by its CMake file and by pkg-config.
file(READ ${SOURCE_DIR}/README.md readme)
string(REGEX MATCH "```cpp\n(#include <troupe/troupe.h>.*)```\n\n```cmake\n(.*)```\nor `g" unused
       "${readme}")
file(WRITE ${work}/fit/fit.cc "${CMAKE_MATCH_1}")
file(WRITE ${work}/fit/CMakeLists.txt "${CMAKE_MATCH_2}")
build_project(${work}/fit)
expect("${line}" ${work}/fit/build/fit)
file(GLOB_RECURSE pkgconfig ${prefix}/troupe.pc)
cmake_path(GET pkgconfig PARENT_PATH pkgconfig)
function(pkg_config variable)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pkgconfig}
                          pkg-config ${ARGN} troupe
                  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${variable} "${flags}" PARENT_SCOPE)
endfunction()
pkg_config(cflags --cflags)
pkg_config(libs --libs)
pkg_config(libdir --variable=libdir)
run(${CXX_COMPILER} -std=c++20 ${cflags} fit/fit.cc -o fit_by_hand ${libs} -Wl,-rpath,${libdir})
expect("${line}" ${work}/fit_by_hand)
expect("error: #error \"Troupe needs C\\+\\+20"
       ${CXX_COMPILER} -std=c++17 -fsyntax-only ${cflags} fit/fit.cc)
expect("error: #error \"_GLIBCXX_DEBUG changes"
       ${CXX_COMPILER} -std=c++20 -D_GLIBCXX_DEBUG -fsyntax-only ${cflags} fit/fit.cc)

# The static library has every registration.
if(NOT PACKAGES AND EXISTS ${BUILD_DIR}/libtroupe.a)
  list(REMOVE_ITEM libs -ltroupe)
  separate_arguments(STATIC_LINK_OPTIONS)
  run(${CXX_COMPILER} -std=c++20 ${cflags} fit/fit.cc -o fit_static ${BUILD_DIR}/libtroupe.a ${libs}
      ${STATIC_LINK_OPTIONS})
  expect("${line}" ${work}/fit_static)
endif()
