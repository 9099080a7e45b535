# `cmake --install`, and `cpack` for Debian packages of the same files: the components are libtroupe,
# libtroupe-dev (headers, find_package(troupe), pkg-config) and troupe (the command line).

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)

install(TARGETS troupe troupe_headers troupe_caf EXPORT troupe-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                COMPONENT libtroupe NAMELINK_COMPONENT libtroupe-dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtroupe-dev)
if(TARGET troupe_cli)
  install(TARGETS troupe_cli DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT troupe)
endif()

install(EXPORT troupe-targets NAMESPACE troupe:: DESTINATION ${package_dir}
        COMPONENT libtroupe-dev)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/troupe-config.cmake.in
                              ${PROJECT_BINARY_DIR}/troupe-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/troupe-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/troupe-config.cmake
              ${PROJECT_BINARY_DIR}/troupe-config-version.cmake
        DESTINATION ${package_dir} COMPONENT libtroupe-dev)

# pkg-config, for whoever does without CMake. The prefix follows from where the file lies.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH to_prefix /${pkgconfig_dir} /)
set(requires ${TROUPE_PUBLIC_LIBRARIES})
list(FILTER requires INCLUDE REGEX "^absl::")
list(TRANSFORM requires REPLACE "^absl::" "absl_")
list(JOIN requires " " requires)
string(APPEND requires " protobuf")
function(troupe_pkgconfig file link_options)
  set(link_options "${link_options}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/troupe.pc.in ${file} @ONLY)
endfunction()
list(JOIN TROUPE_STATIC_LINK_OPTIONS " " static_link_options)
if(BUILD_SHARED_LIBS)
  troupe_pkgconfig(${PROJECT_BINARY_DIR}/troupe.pc "")
else()
  troupe_pkgconfig(${PROJECT_BINARY_DIR}/troupe.pc " ${static_link_options}")
endif()
install(FILES ${PROJECT_BINARY_DIR}/troupe.pc DESTINATION ${pkgconfig_dir}
        COMPONENT libtroupe-dev)

set(TROUPE_INSTALLED_HEADERS troupe.h api/ops.h api/version.h
    ${TROUPE_PUBLIC_HEADERS} ${TROUPE_PUBLIC_MESSAGES})
install(CODE "
  set(TROUPE_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(TROUPE_GENERATED_DIR \"${TROUPE_GENERATED_DIR}\")
  set(TROUPE_INSTALLED_HEADERS \"${TROUPE_INSTALLED_HEADERS}\")
  set(TROUPE_HEADER_STAGE \"${PROJECT_BINARY_DIR}/include\")
  set(TROUPE_HEADER_DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/troupe\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")
" COMPONENT libtroupe-dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtroupe-dev
        COMPONENT libtroupe-dev FILES_MATCHING PATTERN "*.md")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The authors of Troupe <troupe@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL libtroupe libtroupe-dev troupe)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the packages of the libraries that are linked
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBTROUPE_PACKAGE_NAME libtroupe)
set(CPACK_DEBIAN_LIBTROUPE_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBTROUPE_DESCRIPTION "Dataflow runtime: the shared library")
set(same_version "libtroupe (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBTROUPE-DEV_PACKAGE_NAME libtroupe-dev)
set(CPACK_DEBIAN_LIBTROUPE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBTROUPE-DEV_PACKAGE_DEPENDS
    "${same_version}, libabsl-dev, libprotobuf-dev, protobuf-compiler, libcaf-dev")
set(CPACK_COMPONENT_LIBTROUPE-DEV_DESCRIPTION "Dataflow runtime: headers, CMake and pkg-config files")
set(CPACK_DEBIAN_TROUPE_PACKAGE_NAME troupe)
set(CPACK_DEBIAN_TROUPE_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TROUPE_PACKAGE_DEPENDS "${same_version}")
set(CPACK_COMPONENT_TROUPE_DESCRIPTION "Dataflow runtime: runs TensorFlow's graphs from the command line")
include(CPack)
