#include "client/device/kept_records.h"

namespace fedge::client {

Result<void> KeptRecords::read() {
  FEDGE_TRY(known, KnownClients::read(context_.options.state_directory));
  known_clients_ = std::move(known);
  FEDGE_TRY(summed, SummedUpdates::read(context_.options.state_directory));
  summed_ = std::move(summed);
  return {};
}

void KeptRecords::write_known_clients() {
  context_.writer.post([weak = context_.weak(this), all = known_clients_] {
    const auto self = weak.lock();
    if (!self) return;
    const auto written = all.write(self->context_.options.state_directory);
    protocol::post(self->context_.io, [self, written, number = all.size()] {
      self->context_.step(TaskConductor::KnownClientsWritten{number, written});
    });
  });
}

// The worker also writes the counts of noised updates, so a sum is recorded after the update that it
// contains.
void KeptRecords::write_sum(const protocol::SecureSession& session, const SummedUpdates::Record& record) {
  context_.worker.post([weak = context_.weak(this), session, record] {
    const auto self = weak.lock();
    if (!self) return;
    protocol::post(self->context_.io, [self, session, written = record.write()] {
      self->context_.step(TaskConductor::SumWritten{session, written});
    });
  });
}

}  // namespace fedge::client
