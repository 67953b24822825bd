// adead for C++17 and later, header only: tensor operations with the same bits on every device. MIT license.
//
// A thin layer over adead.h: handles that own what they name and are moved, not copied; a method for every operation; errors as
// exceptions, one class for each status, or with ADEAD_NO_EXCEPTIONS as Results. bindings/cpp/README.md is the guide.
#ifndef ADEAD_HPP
#define ADEAD_HPP

#include <adead/context.hpp>
#include <adead/interrupt.hpp>
#include <adead/log.hpp>
#include <adead/memory.hpp>
#include <adead/overlap.hpp>
#include <adead/profile.hpp>

#endif
