// Two nodes on loopback in one io_context, which the test runs until a condition holds.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rng.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/messages.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {

inline SecretKey test_key(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

// One end of a link and everything it has received.
struct End {
  std::shared_ptr<Link> link;
  std::vector<Message> messages;
  std::optional<Error> closed;
  int closed_count = 0;

  void use(std::shared_ptr<Link> made) {
    link = std::move(made);
    link->set_callbacks({.on_message = [this](const Message& message) { messages.push_back(message); },
                         .on_closed =
                             [this](const Error& error) {
                               closed = error;
                               ++closed_count;
                             }});
  }
};

struct Loopback {
  // Runs handlers until the condition holds; returns false after 20 s, so that a failing test ends.
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    io.restart();
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      io.run_one_for(std::chrono::milliseconds(5));
    return condition();
  }

  void listen(ListenOptions options = {}) {
    options.address = {"127.0.0.1", 0};
    auto made = protocol::listen(io, server_identity, options, [this](std::shared_ptr<Link> link) {
      ++links;
      server.use(std::move(link));
      if (authorise_at_once) server.link->authorise();
      if (on_server_link) on_server_link();
    });
    REQUIRE(made);
    listener = std::move(*made);
  }

  void connect(const Timeouts& timeouts = {}) {
    protocol::connect(
        io, client_identity, listener->local_address(), server_key.public_key(),
        [this](Result<std::shared_ptr<Link>> link) {
          if (!link) {
            refused = link.error();
            return;
          }
          client.use(*link);
          if (authorise_at_once) client.link->authorise();
        },
        timeouts);
  }

  // Both ends of an authorised link.
  void join(const ListenOptions& options = {}, const Timeouts& timeouts = {}) {
    listen(options);
    connect(timeouts);
    REQUIRE(run_until([&] { return server.link && client.link; }));
  }

  ~Loopback() {
    if (client.link) client.link->close("test over");
    if (server.link) server.link->close("test over");
    listener.reset();
    io.restart();
    io.run_for(std::chrono::seconds(10));
  }

  boost::asio::io_context io;  // first: links and listener must be destroyed before it
  SecretKey server_key = test_key(1);
  SecretKey client_key = test_key(2);
  std::shared_ptr<TlsIdentity> server_identity = *make_tls_identity(server_key);
  std::shared_ptr<TlsIdentity> client_identity = *make_tls_identity(client_key);
  bool authorise_at_once = true;
  std::function<void()> on_server_link;
  int links = 0;
  End server;
  End client;
  std::optional<Error> refused;
  std::unique_ptr<Listener> listener;
};

// A deterministic payload of this many parameters, and its manifest.
struct Payload {
  explicit Payload(std::size_t parameters, std::uint32_t chunk_size = kDefaultChunkSize)
      : values(parameters) {
    for (std::size_t i = 0; i < parameters; ++i) values[i] = static_cast<float>((i * 2654435761U) % 1000003);
    manifest = make_manifest(sha256("layout"), Coverage::all(parameters), bytes(), chunk_size);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(values)); }
  // Stores the complete object, ready to be served.
  std::shared_ptr<StoredObject> store_in(ChunkStore& store) const {
    auto object = store.build(manifest, [&](std::size_t i, std::span<std::byte> out) -> Result<void> {
      std::memcpy(out.data(), bytes().data() + i * manifest.chunk_size, out.size());
      return {};
    });
    REQUIRE(object);
    return *object;
  }
  bool same_as(StoredObject& object) const {
    std::vector<std::byte> chunk(manifest.chunk_size);
    for (std::size_t i = 0; i < manifest.chunk_count(); ++i) {
      const auto out = std::span(chunk).first(manifest.chunk_length(i));
      if (!object.read(i, out)) return false;
      if (std::memcmp(out.data(), bytes().data() + i * manifest.chunk_size, out.size()) != 0) return false;
    }
    return true;
  }

  std::vector<float> values;
  Manifest manifest;
};

// Serves zeros in place of one chunk, or fails for this chunk.
struct FalseSource final : ChunkSource {
  explicit FalseSource(std::size_t wrong_chunk, std::shared_ptr<StoredObject> truth,
                       std::optional<Error> failure = {})
      : wrong(wrong_chunk), object(std::move(truth)), error(std::move(failure)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    if (chunk != wrong) return object->read_part(chunk, from, out);
    if (error) return *error;
    std::fill(out.begin(), out.end(), std::byte{0});
    return {};
  }
  std::size_t wrong;
  std::shared_ptr<StoredObject> object;
  std::optional<Error> error;
};

struct Fetch {
  explicit Fetch(const Manifest& manifest)
      : store(make_memory_chunk_store(64 << 20)), object(*store->create(manifest)) {}
  void start(Link& link) {
    link.fetch(object->manifest(), object, [this](Result<void> result) {
      outcome = result;
      ++calls;
    });
  }
  std::unique_ptr<ChunkStore> store;
  std::shared_ptr<StoredObject> object;
  std::optional<Result<void>> outcome;
  int calls = 0;
};

}  // namespace fedge::protocol
