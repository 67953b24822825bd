# The targets of adead, given adead_include_dir, adead_library_dir and the names adead_shared and adead_soname, and of each
# library that it has beside that (models) adead_<library>_shared and adead_<library>_soname. adead_missing is the kind that this
# adead lacks, shared or static, or empty.

# A target that is the static one if BUILD_SHARED_LIBS is set and off, else the shared one; or the only one.
function(adead_choose name shared static)
  add_library(${name} INTERFACE IMPORTED)
  if(NOT TARGET ${shared} OR (TARGET ${static} AND DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS))
    set_target_properties(${name} PROPERTIES INTERFACE_LINK_LIBRARIES ${static})
  else()
    set_target_properties(${name} PROPERTIES INTERFACE_LINK_LIBRARIES ${shared})
  endif()
endfunction()

if(NOT adead_missing STREQUAL "shared" AND NOT TARGET adead::shared)
  add_library(adead::shared SHARED IMPORTED)
  set_target_properties(adead::shared PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/${adead_shared}"
    IMPORTED_SONAME "${adead_soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}")
endif()

if(NOT adead_missing STREQUAL "static" AND NOT TARGET adead::static)
  add_library(adead::static STATIC IMPORTED)
  set_target_properties(adead::static PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/libadead.a"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}"
    # What Rust's standard library needs of the system.
    INTERFACE_LINK_LIBRARIES "dl;pthread;m;gcc_s")
endif()

if(NOT TARGET adead::adead)
  adead_choose(adead::adead adead::shared adead::static)
endif()

if(adead_models_shared AND NOT TARGET adead::models)
  add_library(adead::models SHARED IMPORTED)
  set_target_properties(adead::models PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/${adead_models_shared}"
    IMPORTED_SONAME "${adead_models_soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}")
endif()
