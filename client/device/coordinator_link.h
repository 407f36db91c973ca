// CoordinatorLink: the daemon's connection to its coordinator: finds its address, opens the link, and serves
// this client's updates over it. The conductor's port Coordinator. On the io_context's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/device/context.h"
#include "client/discovery/discovery.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

class CoordinatorLink final : public Coordinator {
 public:
  // Handles a message that is not for the engine; false: it is.
  using Filter = std::function<bool(const protocol::Message&)>;
  explicit CoordinatorLink(DaemonContext& context) : context_(context), store_again_(context.io) {}
  // Before connect().
  void begin(Filter filter);

  void connect() override;
  void disconnect(const std::string& reason) override;
  void send(const protocol::Message& message) override;
  PublicKey identity() const override { return context_.membership.identity(); }

  // Calls `done` once, unless the fetch is cancelled or the link is lost first.
  void fetch(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
             std::function<void(const Result<void>&)> done);
  void cancel_fetch();
  void stop_serving(RunId run);
  Duration round_trip() const { return round_trip_; }
  void stop_searching() { search_ = {}; }
  void close();
  // Breaks a cycle: the callbacks of an open link hold the daemon, which holds the link.
  void let_go();

 private:
  void connect_to(const protocol::Address& address);
  // The peer may have proved to hold the announced key.
  void check_key(const PublicKey& key);
  void prefer(const std::vector<protocol::Address>& announced);
  // Stores the address at which the coordinator answered.
  void remember(const protocol::Address& address);
  void take_contact(const protocol::Contact& contact);
  // Stores the membership, then reports the news and tells the coordinator, if it has announced a key. Tries
  // again after a failure.
  void store_membership();
  void stored(const Result<void>& written, const std::optional<PublicKey>& kept, std::size_t news);
  void welcomed(const protocol::Address& address, Time asked, const Result<protocol::Welcome>& welcome);
  void use(const std::shared_ptr<protocol::Link>& link, const protocol::Welcome& welcome);
  void lost(const Error& error);
  // Whether this update must not leave because it is unmasked; then it is not sent.
  bool withhold(const protocol::UpdateOffer& offer) const;
  void step(ClientEngine::Input input) { context_.step(std::move(input)); }

  DaemonContext& context_;
  Filter filter_;
  std::vector<protocol::Address> addresses_;  // of the coordinator, in the order to try
  std::size_t next_address_ = 0;
  dht::Subscription search_;  // looks up the coordinator before each connection
  std::size_t searches_ = 0;  // while a next key is announced
  std::shared_ptr<protocol::Link> link_;
  protocol::Address here_;    // the address of the link
  std::size_t contacts_ = 0;  // that the link has brought
  std::vector<Event> news_;   // to report once the membership is stored
  protocol::Timer store_again_;
  Duration round_trip_{};  // from Hello to Welcome
  std::optional<protocol::Manifest> fetching_;
  std::map<RunId, protocol::Manifest> serving_;  // updates
};

}  // namespace fedge::client
