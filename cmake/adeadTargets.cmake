# The targets of adead, given adead_include_dir, adead_library_dir and the names adead_shared and adead_soname, and where it has
# sentences, adead_sentences_shared and adead_sentences_soname.

if(NOT TARGET adead::shared)
  add_library(adead::shared SHARED IMPORTED)
  set_target_properties(adead::shared PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/${adead_shared}"
    IMPORTED_SONAME "${adead_soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}")

  add_library(adead::static STATIC IMPORTED)
  set_target_properties(adead::static PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/libadead.a"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}"
    # What Rust's standard library needs of the system.
    INTERFACE_LINK_LIBRARIES "dl;pthread;m;gcc_s")

  add_library(adead::adead INTERFACE IMPORTED)
  if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
    set_target_properties(adead::adead PROPERTIES INTERFACE_LINK_LIBRARIES adead::static)
  else()
    set_target_properties(adead::adead PROPERTIES INTERFACE_LINK_LIBRARIES adead::shared)
  endif()
endif()

if(adead_sentences_shared AND NOT TARGET adead::sentences)
  add_library(adead::sentences SHARED IMPORTED)
  set_target_properties(adead::sentences PROPERTIES
    IMPORTED_LOCATION "${adead_library_dir}/${adead_sentences_shared}"
    IMPORTED_SONAME "${adead_sentences_soname}"
    INTERFACE_INCLUDE_DIRECTORIES "${adead_include_dir}")
endif()
