"""The C library of adead as a package of Conan 2, from the checkout that this file is part of."""

import os
import re
import shutil
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.build import cross_building
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir
from conan.tools.scm import Git

required_conan_version = ">=2.4"

# What cargo and CMake read. Other files of the checkout must not change the recipe's revision.
SOURCES = r"(\.cargo|cmake|include|core|bindings|models|cli|benches/rust|benches/gpu|tests/conformance/runner)/|CMakeLists|Cargo\.|LICENSE"


class Adead(ConanFile):
    name = "adead"
    description = "Tensor operations with the same bits on every device"
    license = "MIT"
    url = homepage = "https://github.com/adead/adead"
    topics = ("gpu", "compute", "tensor", "deterministic", "matmul")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "models": [True, False], "minimal": [True, False]}
    default_options = {"shared": False, "models": False, "minimal": False}
    options_description = {
        "models": "also libadead_models: sentence embeddings, text generation. It is a shared library",
        "minimal": "the smallest library: without CUDA, AVX-512, profiles and more",
    }

    def set_version(self):
        cargo = (Path(self.recipe_folder) / "../../Cargo.toml").read_text()
        self.version = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', cargo, re.M)[1]

    def export_sources(self):
        root, out = Path(self.recipe_folder).resolve().parents[1], Path(self.export_sources_folder)
        try:
            files = Git(self, str(root)).included_files()
        except ConanException as error:
            raise ConanException(f"{root} is not a git checkout, from which this recipe takes the sources: {error}") from error
        # A file that was removed since the last commit is still listed.
        files = [file for file in files if re.match(SOURCES, file) and (root / file).exists()]
        for file in files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            # With its time, by which cargo knows what it has built.
            shutil.copy2(root / file, out / file)

    def configure(self):
        # The interface is C's. The C++ headers call it inline.
        for setting in ("compiler.cppstd", "compiler.libcxx"):
            self.settings.rm_safe(setting)

    def package_id(self):
        # Cargo builds the same library for every compiler and every build type of CMake.
        del self.info.settings.compiler
        del self.info.settings.build_type

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("adead runs on Linux, on x86_64 and armv8")
        if self.options.models and not self.options.shared:
            raise ConanInvalidConfiguration("libadead_models is a shared library: with adead/*:models=True set adead/*:shared=True")

    def validate_build(self):
        if cross_building(self):
            raise ConanInvalidConfiguration("this recipe builds for this machine: for another one use CMake's ADEAD_RUST_TARGET")
        if not shutil.which("cargo"):
            raise ConanInvalidConfiguration("cargo builds adead, and PATH has no cargo: install Rust 1.89, https://rustup.rs")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ADEAD_MODELS"] = bool(self.options.models)
        toolchain.cache_variables["ADEAD_MINIMAL"] = bool(self.options.minimal)
        toolchain.generate()

    def build(self):
        # Conan's copies keep the times of files, but not of folders, which cargo compares too.
        for folder, _, files in os.walk(self.source_folder):
            if files:
                newest = max((Path(folder) / file).stat().st_mtime for file in files)
                os.utime(folder, (newest, newest))
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder) / "licenses"))
        libraries = str(Path(self.package_folder) / "lib")
        # Conan makes its own from package_info.
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, str(Path(libraries) / folder))
        rm(self, "libadead.a" if self.options.shared else "libadead.so*", libraries)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "adead")
        # Conan's target of all components would be adead::adead, which must not bring libadead_models.
        self.cpp_info.set_property("cmake_target_name", "adead::all")
        core = self.cpp_info.components["core"]
        core.libs = ["adead"]
        core.set_property("cmake_target_name", "adead::adead")
        core.set_property("cmake_target_aliases", ["adead::shared" if self.options.shared else "adead::static"])
        core.set_property("pkg_config_name", "adead")
        if not self.options.shared:
            core.system_libs = ["dl", "pthread", "m", "gcc_s"]
        if self.options.models:
            models = self.cpp_info.components["models"]
            models.libs = ["adead_models"]
            models.set_property("cmake_target_name", "adead::models")
            models.set_property("pkg_config_name", "adead-models")
