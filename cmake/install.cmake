# `cmake --install`: programs, libtroupe.so, the public headers and find_package(troupe).

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)

install(TARGETS troupe troupe_headers EXPORT troupe-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET troupe_cli)
  install(TARGETS troupe_cli DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT troupe-targets NAMESPACE troupe:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/troupe-config.cmake.in
                              ${PROJECT_BINARY_DIR}/troupe-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/troupe-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/troupe-config.cmake
              ${PROJECT_BINARY_DIR}/troupe-config-version.cmake
        DESTINATION ${package_dir})

# Headers: include/troupe/troupe.h for users, and what it reaches below include/troupe, so that the
# root-relative includes inside them resolve too.
install(FILES ${TROUPE_GENERATED_DIR}/include/troupe/troupe.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe)
install(CODE "
  set(TROUPE_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(TROUPE_GENERATED_DIR \"${TROUPE_GENERATED_DIR}\")
  set(TROUPE_HEADER_DESTINATION \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/troupe\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")
")
