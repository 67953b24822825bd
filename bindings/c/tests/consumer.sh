#!/bin/sh
# Installs, deletes the build tree, moves what was installed, and only then builds programs that use it: through
# find_package both ways, through pkg-config, and from a build tree.
#   consumer.sh CMAKE SOURCE WORK CARGO_TARGET_DIR MODELS
# MODELS is ON or OFF: whether libadead_models is among them.
set -eu
cmake=$1 source=$2 work=$3 cargo=$4 models=$5
rm -rf "$work"
mkdir -p "$work"

configure() { # BUILD [OPTION...]: without a C++ compiler, which only tests and examples need
  build=$1
  shift
  CXX=/nowhere/c++ "$cmake" -S "$source" -B "$build" -DADEAD_MODELS="$models" -DADEAD_CARGO_TARGET_DIR="$cargo" "$@"
  "$cmake" --build "$build"
}

consume() { # NAME PREFIX [OPTION...]: a project of its own finds the package, builds and runs
  name=$1 prefix=$2
  shift 2
  "$cmake" -S "$source/bindings/c/tests/consumer" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" -DMODELS="$models" \
    -DSOURCE="$source" "$@"
  "$cmake" --build "$work/$name"
  (cd "$work/$name" && ctest --output-on-failure)
}

needs_library() { # PROGRAM: whether it is linked to the shared library
  readelf -d "$1" | grep -q 'NEEDED.*libadead\.so\.0'
}

configure "$work/build" -DCMAKE_INSTALL_LIBDIR=lib
consume from_build "$work/build"
"$cmake" --install "$work/build" --prefix "$work/first"
rm -rf "$work/build"
mv "$work/first" "$work/moved here"
prefix="$work/moved here"

consume shared "$prefix"
consume static "$prefix" -DBUILD_SHARED_LIBS=OFF
needs_library "$work/shared/c_adead"
needs_library "$work/static/c_shared"
if needs_library "$work/static/c_adead"; then exit 1; fi

# pkg-config, the static library without the shared one beside it.
PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
export PKG_CONFIG_PATH
flags() { pkg-config "$@" adead; }
pkg-config --modversion adead
eval "cc $source/bindings/c/tests/consumer/main.c -o '$work/with_pkg_config' $(flags --cflags --libs)"
needs_library "$work/with_pkg_config"
LD_LIBRARY_PATH="$prefix/lib" "$work/with_pkg_config"
eval "c++ -std=c++17 $source/bindings/c/tests/consumer/wrapper.cpp -o '$work/wrapper' $(flags --cflags --libs)"
LD_LIBRARY_PATH="$prefix/lib" "$work/wrapper"
if [ "$models" = ON ]; then
  eval "cc $source/models/c/examples/embed.c -o '$work/embed' $(pkg-config --cflags --libs adead-models)"
  echo "The ferry came in." | LD_LIBRARY_PATH="$prefix/lib" "$work/embed" "$source/tests/sentences/tiny"
fi
eval "cc $source/bindings/c/examples/profile.c -o '$work/profile' $(flags --cflags --libs)"
LD_LIBRARY_PATH="$prefix/lib" "$work/profile"
eval "cc $source/bindings/c/examples/layers.c -o '$work/layers' $(flags --cflags --libs)"
LD_LIBRARY_PATH="$prefix/lib" "$work/layers" "$source/tests/sentences/tiny/model.safetensors"
for example in flat overlap; do
  eval "cc $source/bindings/c/examples/$example.c -o '$work/$example' $(flags --cflags --libs)"
  LD_LIBRARY_PATH="$prefix/lib" "$work/$example"
done
rm "$prefix/lib/"libadead.so*
eval "cc $source/bindings/c/tests/consumer/main.c -o '$work/with_pkg_config_static' $(flags --static --cflags --libs)"
"$work/with_pkg_config_static"

# Nothing installed names where it was built or installed.
if grep -rIl -e "$source" -e "$work" "$prefix"; then
  echo "these files name a place of this machine"
  exit 1
fi
