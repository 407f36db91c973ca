// KeptRecords: what the daemon's secure sessions keep in the state directory: the keys of other clients, and
// the sums whose masks were revealed. The conductor's port Keep. On the io_context's thread; other threads
// write.
#pragma once

#include <optional>

#include "client/device/context.h"

namespace fedge::client {

class KeptRecords final : public Keep {
 public:
  explicit KeptRecords(DaemonContext& context) : context_(context) {}
  // Before anything else. kCorrupt, with the file's name, if one is damaged.
  Result<void> read();

  const SecretKey& identity() override { return context_.key; }
  Entropy entropy(const protocol::SecureSession&) override { return system_entropy(); }
  KnownClients* known_clients() override { return &known_clients_; }
  void write_known_clients() override;
  SummedUpdates& summed_updates() override { return *summed_; }
  void write_sum(const protocol::SecureSession& session, const SummedUpdates::Record& record) override;

 private:
  DaemonContext& context_;
  KnownClients known_clients_;
  std::optional<SummedUpdates> summed_;  // set by read()
};

}  // namespace fedge::client
