# Installs the headers, the libraries, the CMake package and the pkg-config files. Nothing installed names the place, so
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

set(shared_libraries "${adead_shared}")
set(others "${libraries}/${adead_soname}" "${libraries}/libadead.so" "${libraries}/libadead.a")
set(left_out)
if(ADEAD_MODELS)
  list(APPEND shared_libraries "${adead_models_shared}")
  list(APPEND others "${libraries}/${adead_models_soname}" "${libraries}/libadead_models.so")
  configure_file(cmake/adead-models.pc.in "${PROJECT_BINARY_DIR}/install/adead-models.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/install/adead-models.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
else()
  list(APPEND left_out PATTERN "models.h*" EXCLUDE PATTERN "text.hpp" EXCLUDE PATTERN "gguf.hpp" EXCLUDE PATTERN "train.hpp"
    EXCLUDE)
endif()
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" ${left_out})
foreach(library IN LISTS shared_libraries)
  install(PROGRAMS "${libraries}/${library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endforeach()
install(FILES ${others} DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${PROJECT_BINARY_DIR}/install/adeadConfig.cmake" "${PROJECT_BINARY_DIR}/adeadConfigVersion.cmake"
  cmake/adeadTargets.cmake DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/install/adead.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(CMAKE_STRIP)
  install(CODE "
    set(installed \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    if(IS_ABSOLUTE \"${CMAKE_INSTALL_LIBDIR}\")
      set(installed \"${CMAKE_INSTALL_LIBDIR}\")
    endif()
    foreach(library ${shared_libraries})
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded \"\$ENV{DESTDIR}\${installed}/\${library}\")
    endforeach()
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${installed}/libadead.a\")")
endif()
