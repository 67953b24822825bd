// A description of this machine: processor, memory, GPUs.
#ifndef ADEAD_DEVICE_HPP
#define ADEAD_DEVICE_HPP

#include <adead/result.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A data or unified cache: level, line, size.
using Cache = adead_cache;
/// A device's memory in bytes: total, free, held, used, allocations.
using MemoryUse = adead_memory_use;

/// A report on the machine.
struct Hardware {
  /// Bytes of host memory that this process could use if it were alone, and that it could use now.
  std::uint64_t memory_total, memory_available;
  /// Physical cores and hardware threads that this process may use.
  std::uint32_t cpu_cores, cpu_threads;
  /// The nominal frequency in MHz; 0 if unknown.
  std::uint32_t cpu_frequency_mhz;
  /// The mode that suits the machine.
  Mode recommended;
  std::vector<Cache> cpu_caches;
  std::string cpu_vendor, cpu_model, cpu_features;
  std::size_t gpu_count;
};

/// Describes a device.
struct DeviceInfo {
  /// The name that opens it: "cpu", "cuda:0", "vulkan:1".
  std::string id;
  /// The vendor's name for it, and what its kernels are built for.
  std::string name, arch;
  /// Its vendor, its driver with the version, and its address on the PCI bus; "" if unknown.
  std::string vendor, driver, bus;
  DeviceKind kind;
  ContractLevel contract;
  /// Bytes; 0 if unknown.
  std::uint64_t memory;
  /// Execution units that work at the same time.
  std::uint32_t units;
  /// The device's unique identifier, as the driver reports it.
  std::optional<std::array<std::uint8_t, 16>> uuid;
};

namespace detail {

inline DeviceInfo device(const adead_device_info &from) {
  DeviceInfo info{from.id, from.name, from.arch, from.vendor, from.driver, from.bus, static_cast<DeviceKind>(from.kind),
                  static_cast<ContractLevel>(from.contract), from.memory, from.units, {}};
  if (from.has_uuid) {
    info.uuid.emplace();
    for (std::size_t i = 0; i < info.uuid->size(); i++) (*info.uuid)[i] = from.uuid[i];
  }
  return info;
}

/// Returns `count` devices, each from `at(i, &info)`.
template <class At>
Returned<std::vector<DeviceInfo>> devices(adead_status status, std::size_t count, At at) {
  std::vector<DeviceInfo> all;
  for (std::size_t i = 0; !status && i < count; i++) {
    auto info = sized<adead_device_info>();
    status = at(i, &info);
    if (!status) all.push_back(device(info));
  }
  return done(status, std::move(all));
}

}  // namespace detail

/// Describes the machine.
inline Returned<Hardware> hardware() {
  auto from = detail::sized<adead_hardware>();
  adead_status status = adead_hardware_report(&from);
  return detail::done(status, Hardware{from.memory_total, from.memory_available, from.cpu_cores, from.cpu_threads,
                                       from.cpu_frequency_mhz, static_cast<Mode>(from.recommended),
                                       {from.cpu_caches, from.cpu_caches + from.cpu_cache_count},
                                       from.cpu_vendor, from.cpu_model, from.cpu_features, from.gpu_count});
}

/// Describes the GPUs of this machine, the preferred one first. Opens none.
inline Returned<std::vector<DeviceInfo>> gpus() {
  std::size_t count = 0;
  adead_status status = adead_gpu_count(&count);
  return detail::devices(status, count, adead_gpu_info);
}

/// Describes GPU `index` as each of its backends sees it, the preferred one first.
inline Returned<std::vector<DeviceInfo>> gpu_backends(std::size_t index) {
  std::size_t count = 0;
  adead_status status = adead_gpu_backend_count(index, &count);
  return detail::devices(status, count, [index](std::size_t i, adead_device_info *info) {
    return adead_gpu_backend_info(index, i, info);
  });
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
