// ApiServer runs the admin API of a coordinator on threads of its own, so that the runs do not wait for it:
// on a Unix socket in the data directory, and over HTTPS if an address is configured. The command-line tool
// finds the socket by admin_socket().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/api/api.h"

namespace fedge::server {

std::filesystem::path admin_socket(const std::filesystem::path& data_directory);

struct ApiServerOptions {
  ApiParts parts;
  std::optional<protocol::Address> listen = {};  // empty: no HTTPS
  // PEM files; empty: api-cert.pem and api-key.pem in the data directory, created if both are missing.
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  // Gets what goes wrong without a request, from any thread.
  std::function<void(const Event&)> report = [](const Event&) {};
  std::vector<std::string> hosts = {};  // further names and addresses in a created certificate
};

class ApiServer {
 public:
  // The process must hold the lock of the data directory.
  static Result<std::unique_ptr<ApiServer>> start(const ApiServerOptions& options);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::optional<protocol::Address> address() const;  // of HTTPS, with the actual port
  const std::string& fingerprint() const;            // of the certificate; empty without HTTPS

 private:
  class Impl;
  explicit ApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::server
