// What a profile recorded, as texts. They need libadead_profile: adead::profile. docs/profile.md.
#ifndef ADEAD_PROFILE_TEXT_HPP
#define ADEAD_PROFILE_TEXT_HPP

#include <adead/profile.h>
#include <adead/profile.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

namespace detail {
inline Returned<std::string> profile_text(const Profile &profile, adead_status (*write)(const adead_profile *, char **)) {
  char *text = nullptr;
  adead_status status = write(profile.get(), &text);
  std::unique_ptr<char, void (*)(char *)> owner(text, adead_profile_text_destroy);
  return done(status, std::string(text ? text : ""));
}
}  // namespace detail

/// A finished profile as a table.
inline Returned<std::string> profile_table(const Profile &profile) { return detail::profile_text(profile, adead_profile_table); }

/// As JSON.
inline Returned<std::string> profile_json(const Profile &profile) { return detail::profile_text(profile, adead_profile_json); }

/// As a trace for Perfetto and chrome://tracing.
inline Returned<std::string> profile_trace(const Profile &profile) { return detail::profile_text(profile, adead_profile_trace); }

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
