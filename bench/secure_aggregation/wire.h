// The messages between the two processes of bench_secure_costs: protocol messages in their codec, and masked
// updates, each with the number of its client.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "protocol/codec.h"

namespace fedge::bench {

enum class Kind : std::uint32_t { kMessage, kScalars, kWords, kMask, kEnd, kFigures };

struct Head {
  std::uint32_t client = 0;
  Kind kind = Kind::kMessage;
  std::uint32_t type = 0;  // of a protocol message
  std::uint32_t unused = 0;
  std::uint64_t size = 0;
};

inline void write_all(int socket, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(socket, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::perror("write"), std::exit(1);
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

inline void read_all(int socket, void* data, std::size_t size) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(socket, next, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) std::exit(1);  // the other process has ended
    next += got;
    size -= static_cast<std::size_t>(got);
  }
}

inline void send(int socket, Head head, const void* data, std::size_t size) {
  head.size = size;
  write_all(socket, &head, sizeof head);
  write_all(socket, data, size);
}

inline void send(int socket, std::uint32_t client, const protocol::Message& message) {
  const std::string bytes = protocol::encode(message);
  send(socket, {client, Kind::kMessage, static_cast<std::uint32_t>(protocol::type_of(message))}, bytes.data(),
       bytes.size());
}

inline protocol::Message receive_message(int socket, const Head& head) {
  std::vector<std::byte> bytes(head.size);
  read_all(socket, bytes.data(), bytes.size());
  auto message = protocol::decode(static_cast<protocol::MessageType>(head.type), bytes);
  if (!message) std::fprintf(stderr, "%s\n", message.error().message.c_str()), std::exit(1);
  return std::move(*message);
}

struct Setting {
  std::uint32_t clients = 100;
  std::size_t parameters = 100'000;
  double dropout = 0;
  bool wide = false;     // words of 64 bits
  bool complete = true;  // complete graph
  bool curious = false;  // sparse graph with the parameters against an honest-but-curious coordinator
  double corrupt = 0.1;
};

// The clients' measurements.
struct Figures {
  double client_seconds = 0;  // all steps, mean over clients that stayed
  double slowest_seconds = 0;
  double masking_seconds = 0;  // the masking step alone, mean
  double bytes_up = 0;         // framed, mean over clients that stayed
  double bytes_down = 0;
};

// Runs all clients; the body of the second process. Never returns.
[[noreturn]] void run_clients(int socket, const Setting& setting);

// Returns whether the client drops out after it has shared its secrets.
inline bool vanishes(const Setting& setting, std::uint32_t client) {
  const auto gone = static_cast<std::uint32_t>(setting.dropout * setting.clients);
  return (client * 7919ULL) % setting.clients < gone;
}

}  // namespace fedge::bench
