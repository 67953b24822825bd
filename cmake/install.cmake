# Installs the header, both libraries, the CMake package and the pkg-config file. Nothing installed names the place, so
# the tree may be moved.

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/adead")
set(adead_include_dir "${CMAKE_INSTALL_INCLUDEDIR}")
set(adead_library_dir "${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file(cmake/adeadConfig.cmake.in "${PROJECT_BINARY_DIR}/install/adeadConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" PATH_VARS adead_include_dir adead_library_dir
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)

# pkg-config knows where its file is; an absolute CMAKE_INSTALL_LIBDIR or _INCLUDEDIR is taken as it is.
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(pc_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(pc_prefix "\${pcfiledir}/${to_prefix}")
endif()
configure_file(cmake/adead.pc.in "${PROJECT_BINARY_DIR}/install/adead.pc" @ONLY)

install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(PROGRAMS "${libraries}/${adead_shared}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${libraries}/${adead_soname}" "${libraries}/libadead.so" "${libraries}/libadead.a"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${PROJECT_BINARY_DIR}/install/adeadConfig.cmake" "${PROJECT_BINARY_DIR}/adeadConfigVersion.cmake"
  cmake/adeadTargets.cmake DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/install/adead.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(CMAKE_STRIP)
  install(CODE "
    set(installed \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    if(IS_ABSOLUTE \"${CMAKE_INSTALL_LIBDIR}\")
      set(installed \"${CMAKE_INSTALL_LIBDIR}\")
    endif()
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \"\$ENV{DESTDIR}\${installed}/${adead_shared}\")
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${installed}/libadead.a\")")
endif()
