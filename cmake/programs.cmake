# How tests and examples of C and C++ are built. No other project's floating-point flags: results are compared bit for bit.
find_package(Threads REQUIRED)
set(c_warnings -Wall -Wextra -Wpedantic -Werror)
set(cpp_warnings ${c_warnings} -Wshadow -Wconversion)
set(sentences "${PROJECT_SOURCE_DIR}/tests/sentences")
set(text_models "${PROJECT_SOURCE_DIR}/tests/text")
# Sources there are used by the tests of C++ and of models, too.
set(c_tests "${PROJECT_SOURCE_DIR}/bindings/c/tests")

# For a test's environment: where drivers keep what they compile, instead of the user's folder; what a driver may leak.
set(gpu "ADEAD_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
set(leaks "LSAN_OPTIONS=suppressions=${c_tests}/lsan.supp:print_suppressions=0")

# Everything of a language.
add_custom_target(c)
add_custom_target(cpp)

# c_program(NAME LIBRARY SOURCE…): of C99. LIBRARY is shared, static or models.
function(c_program name library)
  add_executable(${name} ${ARGN})
  add_dependencies(c ${name})
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE ${c_warnings})
  target_link_libraries(${name} PRIVATE adead::${library} Threads::Threads m)
endfunction()

include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=address,undefined)
check_c_source_compiles("int main(void) { return 0; }" ADEAD_HAS_SANITIZERS)
unset(CMAKE_REQUIRED_FLAGS)

# c_sanitized(NAME LIBRARY SANITIZERS SOURCE…): the programs api_NAME and, where the compiler has sanitizers, asan_NAME; `programs`
# lists them.
macro(c_sanitized name library sanitizers)
  c_program(api_${name} ${library} ${ARGN})
  set(programs api_${name})
  if(ADEAD_HAS_SANITIZERS)
    c_program(asan_${name} ${library} ${ARGN})
    target_compile_options(asan_${name} PRIVATE -fsanitize=${sanitizers} -fno-sanitize-recover=all)
    target_link_options(asan_${name} PRIVATE -fsanitize=${sanitizers})
    list(APPEND programs asan_${name})
  endif()
endmacro()

# cpp_program(NAME MODE LIBRARY SOURCE…): MODE is 17 or 20, with _result at its end without exceptions.
function(cpp_program name mode library)
  add_executable(${name} ${ARGN})
  add_dependencies(cpp ${name})
  string(REGEX MATCH "^[0-9]+" standard "${mode}")
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF
    CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${cpp_warnings}>" -g)
  if(mode MATCHES "_result$")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
    target_compile_definitions(${name} PRIVATE ADEAD_NO_EXCEPTIONS)
  endif()
  target_link_libraries(${name} PRIVATE adead::${library} Threads::Threads m ${CMAKE_DL_LIBS})
endfunction()
