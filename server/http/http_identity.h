// HttpIdentity: the certificate and key of an HTTPS server. Browsers refuse Ed25519, so it is not the node's
// key: either files that the operator configured, or a self-signed P-256 certificate that the coordinator
// creates once. `fedge login` pins a self-signed certificate by its fingerprint.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::server {

class HttpIdentity;

struct HttpIdentityFiles {
  std::filesystem::path certificate;  // PEM, the server's certificate first, then its chain
  std::filesystem::path key;          // PEM
};

// Errors name the file. kRefused: other users can read the key.
Result<std::shared_ptr<HttpIdentity>> load_http_identity(const HttpIdentityFiles& files);
// Creates a key and a self-signed certificate, valid for ten years, for these host names and addresses.
// Replaces neither file.
Result<void> create_http_identity(const HttpIdentityFiles& files, const std::vector<std::string>& hosts);
// SHA-256 of the certificate in DER, in hexadecimal.
std::string fingerprint_of(const HttpIdentity& identity);

}  // namespace fedge::server
