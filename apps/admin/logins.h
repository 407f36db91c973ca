// Logins of the command-line tool at coordinators: addresses, access tokens and pinned certificates, in
// $XDG_CONFIG_HOME/fedge/logins.json (default ~/.config), which only its owner may read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::apps {

struct Login {
  protocol::Address address;
  std::string token;
  std::string fingerprint = {};  // of a self-signed certificate; empty: certificate authorities decide
};

// Parses "https://HOST", "https://HOST:PORT" or "HOST:PORT"; the default port is 443.
Result<protocol::Address> parse_coordinator_url(const std::string& url);

// The first is the default. Empty without a file.
Result<std::vector<Login>> read_logins();
// Puts the login first, in place of another with the same address.
Result<void> store_login(const Login& login);
// Removes the login; without an address, the default. kNotFound: there is none.
Result<Login> remove_login(const std::optional<protocol::Address>& address);

}  // namespace fedge::apps
