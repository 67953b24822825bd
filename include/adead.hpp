// adead for C++17 and later, header only: tensor operations with the same bits on every device. MIT license.
//
// A thin layer over adead.h. Handles own their objects and are moved; only tensors are copied. Every operation is a method. Errors
// are exceptions, one class for each status, or Results with ADEAD_NO_EXCEPTIONS. bindings/cpp/README.md is the guide.
#ifndef ADEAD_HPP
#define ADEAD_HPP

#include <adead/context.hpp>
#include <adead/interrupt.hpp>
#include <adead/log.hpp>
#include <adead/memory.hpp>
#include <adead/overlap.hpp>
#include <adead/profile.hpp>
#include <adead/random.hpp>

#endif
