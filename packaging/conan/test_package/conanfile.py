"""Builds programs in C and C++ with the package, and runs them."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestPackage(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        # Presets would be written beside the sources.
        toolchain.user_presets_path = False
        toolchain.cache_variables["MODELS"] = bool(self.dependencies["adead"].options.models)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in sorted(path for path in Path(self.cpp.build.bindir).resolve().glob("uses_*")):
                self.run(str(program), env="conanrun")
