#include "core/crypto/ed25519.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/check.h"
#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/platform/detail/descriptor.h"
#include "core/platform/files.h"

namespace fedge {
namespace {

constexpr std::string_view kFileTag = "fedge-ed25519-1";
constexpr std::size_t kFileSize = kFileTag.size() + 1 + 64 + 1 + 64 + 1;  // tag, seed, public key, newline

std::optional<std::array<std::uint8_t, 32>> parse_hex(std::string_view hex) {
  std::array<std::uint8_t, 32> bytes{};
  if (hex.size() != 64) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit < 0) return std::nullopt;
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | digit);
  }
  return bytes;
}

Error damaged(const std::filesystem::path& path) {
  return {ErrorCode::kCorrupt, "key file " + path.string() +
                                   " is damaged; restore it from a backup. To create a new identity instead, "
                                   "move the file away and enrol again"};
}

// Checks the key file's directory: a user who can replace the file can choose this node's identity.
Result<void> check_directory(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  struct stat info {};
  if (::stat(parent.c_str(), &info) != 0) return system_error("cannot stat", parent, errno);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
    return Error{ErrorCode::kRefused, "directory " + parent.string() +
                                          " of the key file is writable by other users; run: chmod go-w " +
                                          parent.string()};
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return Error{ErrorCode::kRefused, "directory " + parent.string() +
                                          " of the key file belongs to another user; move the key file to a "
                                          "directory owned by the user who runs this program"};
  return {};
}

// Returns four digits, as in chmod.
std::string octal(mode_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3) digits += static_cast<char>('0' + ((mode >> shift) & 7));
  return digits;
}

Result<void> check_file(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error("cannot stat key file", path, errno);
  if (!S_ISREG(info.st_mode))
    return Error{ErrorCode::kRefused, "key file " + path.string() + " is not a regular file"};
  if (info.st_uid != ::geteuid())
    return Error{
        ErrorCode::kRefused,
        "key file " + path.string() +
            " does not belong to the user who runs this program; run the program as the owner of the file"};
  if (const mode_t mode = info.st_mode & 07777; (mode & ~mode_t{S_IRUSR | S_IWUSR}) != 0)
    return Error{ErrorCode::kRefused, "key file " + path.string() + " has mode " + octal(mode) +
                                          "; only its owner may read and write it, and nobody may execute "
                                          "it (mode 0600 or 0400); run: chmod 600 " +
                                          path.string()};
  if (static_cast<std::size_t>(info.st_size) != kFileSize) return damaged(path);
  return {};
}

Result<SecretKey> parse_key(std::string_view text, const std::filesystem::path& path) {
  if (!text.starts_with(kFileTag) || text[kFileTag.size()] != ' ' || text.back() != '\n')
    return damaged(path);
  auto seed = parse_hex(text.substr(kFileTag.size() + 1, 64));
  const auto stored = parse_hex(text.substr(kFileTag.size() + 66, 64));
  if (!seed || !stored) return damaged(path);
  SecretKey key = SecretKey::from_seed(*seed);
  wipe(*seed);
  if (key.public_key().bytes != *stored) return damaged(path);
  return key;
}

}  // namespace

std::string to_hex(const PublicKey& key) { return to_hex(std::span<const std::uint8_t>(key.bytes)); }

Result<PublicKey> parse_public_key(const std::string& hex) {
  const auto bytes = parse_hex(hex);
  if (!bytes)
    return invalid("a public key is 64 lower-case hexadecimal digits, not '" + hex.substr(0, 80) + "'");
  return PublicKey{*bytes};
}

SecretKey SecretKey::generate() {
  std::array<std::uint8_t, 32> seed{};
  fill_random(seed);
  SecretKey key = from_seed(seed);
  wipe(seed);
  return key;
}

SecretKey SecretKey::from_seed(std::span<const std::uint8_t, 32> seed) {
  SecretKey key;
  std::copy(seed.begin(), seed.end(), key.seed_.begin());
  std::array<std::uint8_t, crypto_sign_ed25519_SECRETKEYBYTES> expanded{};
  crypto_sign_ed25519_seed_keypair(key.public_.bytes.data(), expanded.data(), key.seed_.data());
  wipe(expanded);
  return key;
}

SecretKey::~SecretKey() { wipe(seed_); }

SecretKey::SecretKey(SecretKey&& other) noexcept : seed_(other.seed_), public_(other.public_) {
  wipe(other.seed_);
}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this != &other) {
    seed_ = other.seed_;
    public_ = other.public_;
    wipe(other.seed_);
  }
  return *this;
}

Signature sign(const SecretKey& key, std::span<const std::byte> message) {
  std::array<std::uint8_t, crypto_sign_ed25519_SECRETKEYBYTES> expanded{};  // the seed, then the public key
  const auto rest = std::copy(key.seed().begin(), key.seed().end(), expanded.begin());
  std::copy(key.public_key().bytes.begin(), key.public_key().bytes.end(), rest);
  Signature signature{};
  crypto_sign_ed25519_detached(signature.data(), nullptr,
                               reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                               expanded.data());
  wipe(expanded);
  return signature;
}

bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature) {
  return crypto_sign_ed25519_verify_detached(signature.data(),
                                             reinterpret_cast<const unsigned char*>(message.data()),
                                             message.size(), key.bytes.data()) == 0;
}

// Writes the whole file or nothing: into a temporary file, then link(), which fails if the path exists.
Result<void> store_key(const SecretKey& key, const std::filesystem::path& path) {
  std::filesystem::path beside = path;
  beside += "." + random_hex(8) + ".new";
  std::string text;
  text.reserve(kFileSize);  // no reallocation leaves a copy of the seed behind
  std::string seed = to_hex(key.seed());
  text.append(kFileTag).append(" ").append(seed).append(" ").append(to_hex(key.public_key())).append("\n");
  wipe({reinterpret_cast<std::uint8_t*>(seed.data()), seed.size()});
  const Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return system_error("cannot create key file", path, errno);
  // Sets mode 0600 independently of the umask.
  const bool closed = ::fchmod(file.get(), S_IRUSR | S_IWUSR) == 0;
  const ssize_t written = closed ? ::write(file.get(), text.data(), text.size()) : -1;
  int error = written < 0 ? errno : static_cast<std::size_t>(written) == text.size() ? 0 : ENOSPC;
  wipe({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && ::link(beside.c_str(), path.c_str()) != 0) error = errno;
  ::unlink(beside.c_str());
  if (error != 0) return system_error("cannot write key file", path, error);
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) return system_error("cannot sync", parent, errno);
  return {};
}

Result<std::optional<SecretKey>> load_key(const std::filesystem::path& path) {
  FEDGE_TRY_VOID(check_directory(path));
  // O_NONBLOCK: opening a pipe at this path must not block.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::optional<SecretKey>();
    if (errno == ELOOP)
      return Error{ErrorCode::kRefused, "key file " + path.string() +
                                            " is a symbolic link; replace the link with the key file itself"};
    return system_error("cannot open key file", path, errno);
  }
  FEDGE_TRY_VOID(check_file(file.get(), path));
  std::array<std::uint8_t, kFileSize> buffer{};
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  if (got < 0) return system_error("cannot read key file", path, errno);
  if (static_cast<std::size_t>(got) != buffer.size()) return damaged(path);
  auto key = parse_key({reinterpret_cast<const char*>(buffer.data()), buffer.size()}, path);
  wipe(buffer);
  if (!key) return key.error();
  return std::optional<SecretKey>(std::move(key).value());
}

Result<SecretKey> load_or_create_key(const std::filesystem::path& path) {
  FEDGE_TRY(existing, load_key(path));
  if (existing) return std::move(*existing);
  SecretKey key = SecretKey::generate();
  const auto stored = store_key(key, path);
  if (stored) return key;
  // Another process may have created a key at the same moment; use that key.
  FEDGE_TRY(other, load_key(path));
  if (other) return std::move(*other);
  return stored.error();
}

}  // namespace fedge
