#include "server/store/input_codec.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/check.h"
#include "dht/node_record.h"
#include "protocol/codec.h"
#include "store/journal.pb.h"

namespace fedge::server {
namespace {

using Record = journal::v1::Record;

void put(journal::v1::Task& out, TaskId task) {
  out.set_round(task.round.value());
  out.set_track(task.track.value());
  out.set_kind(static_cast<std::uint32_t>(task.kind));
}
TaskId task_of(const journal::v1::Task& task) {
  return {RoundNumber(task.round()), TrackId(task.track()), static_cast<TaskKind>(std::min(task.kind(), 2U))};
}

void put(Record& out, const Expired&) { out.mutable_expired(); }
void put(Record& out, const RunEngine::ClientArrived& arrived) {
  auto* made = out.mutable_arrived();
  made->set_client(arrived.client.value());
  made->set_samples(arrived.samples.value());
  made->set_capability(arrived.capability);
  if (arrived.most.value() < UINT64_MAX) made->set_most(arrived.most.value());
  made->set_evaluates(arrived.evaluates.value());
  if (!arrived.power) return;
  // The message of the protocol, of which the journal needs no more.
  made->set_answer(protocol::encode(protocol::RunAnswer{
      .run = RunId(1), .ready = true, .samples = SampleCount(1), .power = *arrived.power}));
}
void put(Record& out, const RunEngine::ClientLeft& left) {
  left.for_good ? out.set_revoked(left.client.value()) : out.set_left(left.client.value());
}
void put(Record& out, const RunEngine::Described& described) {
  auto* made = out.mutable_described();
  made->set_client(described.client.value());
  const auto bytes = dht::encode_node_record(described.record);
  FEDGE_CHECK(bytes, "a record that came from the directory can go there again");
  made->set_record(bytes->data(), bytes->size());
}
void put(Record& out, const RunEngine::Offered& offered) {
  out.mutable_offered()->set_client(offered.client.value());
  out.mutable_offered()->set_message(protocol::encode(offered.offer));
}
void put(Record& out, const RunEngine::Stored& stored) {
  FEDGE_CHECK(!stored.reported, "the offer of a real client has its report");
  out.mutable_stored()->set_client(stored.client.value());
  put(*out.mutable_stored()->mutable_task(), stored.task);
}
void put(Record& out, const RunEngine::Damaged& damaged) {
  auto* made = out.mutable_damaged();
  made->set_client(damaged.client.value());
  put(*made->mutable_task(), damaged.task);
  made->set_code(static_cast<std::uint32_t>(damaged.error.code));
  made->set_reason(damaged.error.message);
}
void put(Record& out, const RunEngine::Failed& failed) {
  out.mutable_failed()->set_client(failed.client.value());
  out.mutable_failed()->set_message(protocol::encode(failed.failure));
}
void put(Record& out, const RunEngine::Committed& committed) {
  put(*out.mutable_committed(), {committed.round, committed.track, committed.kind});
  out.mutable_committed()->set_not_made(!committed.made);
  out.mutable_committed()->set_ends(committed.ends);
}
void put(Record& out, const RunEngine::PolicyChanged& changed) {
  out.set_policy_changed(aggregation::to_toml(changed.policy));
}
void put(Record& out, const RunEngine::Stop& stop) { out.set_stop(stop.reason); }
void put(Record& out, const RunEngine::Restarted&) { out.mutable_restarted(); }

void put(Record& out, const SummedTurn& summed) {
  auto* made = out.mutable_summed();
  made->set_offer(protocol::encode(summed.offer));
  for (const Range& cell : summed.cells) {
    made->add_cells(cell.begin);
    made->add_cells(cell.end);
  }
  for (const ClientId client : summed.clients) made->add_clients(client.value());
}

template <class M>
Result<M> message(const std::string& bytes) {
  return protocol::decode<M>(std::as_bytes(std::span(bytes)));
}

Result<RunEngine::ClientArrived> arrived_of(const Record::Arrived& record) {
  RunEngine::ClientArrived arrived{
      ClientId(record.client()), SampleCount(record.samples()), record.capability(),
      SampleCount(record.most() > 0 ? record.most() : UINT64_MAX), SampleCount(record.evaluates())};
  if (record.answer().empty()) return arrived;
  FEDGE_TRY(answer, message<protocol::RunAnswer>(record.answer()));
  if (!answer.power) return invalid("its answer does not describe a device");
  arrived.power = std::make_shared<const DevicePower>(*answer.power);
  return arrived;
}

Result<RunEngine::Input> input_of(const Record& record) {
  using Input = RunEngine::Input;
  switch (record.input_case()) {
    case Record::kExpired:
      return Input(Expired{});
    case Record::kArrived: {
      FEDGE_TRY(arrived, arrived_of(record.arrived()));
      return Input(std::move(arrived));
    }
    case Record::kLeft:
      return Input(RunEngine::ClientLeft{ClientId(record.left())});
    case Record::kRevoked:
      return Input(RunEngine::ClientLeft{ClientId(record.revoked()), /*for_good=*/true});
    case Record::kDescribed: {
      FEDGE_TRY(node, dht::decode_node_record(std::as_bytes(std::span(record.described().record()))));
      return Input(RunEngine::Described{ClientId(record.described().client()), std::move(node)});
    }
    case Record::kOffered: {
      FEDGE_TRY(offer, message<protocol::UpdateOffer>(record.offered().message()));
      return Input(RunEngine::Offered{ClientId(record.offered().client()), std::move(offer)});
    }
    case Record::kStored:
      return Input(RunEngine::Stored{ClientId(record.stored().client()), task_of(record.stored().task())});
    case Record::kDamaged:
      return Input(RunEngine::Damaged{
          ClientId(record.damaged().client()), task_of(record.damaged().task()),
          Error{static_cast<ErrorCode>(record.damaged().code()), record.damaged().reason()}});
    case Record::kFailed: {
      FEDGE_TRY(failure, message<protocol::TaskFailed>(record.failed().message()));
      return Input(RunEngine::Failed{ClientId(record.failed().client()), std::move(failure)});
    }
    case Record::kCommitted:
      return Input(RunEngine::Committed{task_of(record.committed()).round, task_of(record.committed()).track,
                                        task_of(record.committed()).kind, !record.committed().not_made(),
                                        record.committed().ends()});
    case Record::kPolicyChanged: {
      FEDGE_TRY(document, config::parse_toml(record.policy_changed(), "policy"));
      FEDGE_TRY(policy, aggregation::read_policy(document));
      return Input(RunEngine::PolicyChanged{std::move(policy)});
    }
    case Record::kStop:
      return Input(RunEngine::Stop{record.stop()});
    case Record::kRestarted:
      return Input(RunEngine::Restarted{});
    case Record::kLost:
    case Record::kSummed:
    case Record::INPUT_NOT_SET:
      break;
  }
  return Error{ErrorCode::kCorrupt, "its type is unknown to this version of the program"};
}

Result<SummedTurn> summed_of(const Record::Summed& record) {
  SummedTurn summed;
  FEDGE_TRY(offer, message<protocol::UpdateOffer>(record.offer()));
  summed.offer = std::move(offer);
  std::size_t values = 0;
  for (int i = 0; i + 1 < record.cells_size(); i += 2) {
    const Range cell{record.cells(i), record.cells(i + 1)};
    if (cell.begin >= cell.end || (!summed.cells.empty() && cell.begin < summed.cells.back().end))
      return invalid("its cells are not in ascending order");
    values += cell.size();
    summed.cells.push_back(cell);
  }
  if (summed.offer.masked_scalars.size() != summed.cells.size() ||
      summed.offer.update.payload_size != values * sizeof(std::int64_t))
    return invalid("its sums do not match its cells");
  for (const std::uint32_t client : record.clients()) summed.clients.emplace_back(client);
  return summed;
}

}  // namespace

std::string encode_record(const JournalRecord& record) {
  Record out;
  if (const auto* lost = std::get_if<LostUpdate>(&record)) {
    out.set_lost(lost->sequence);
  } else if (const auto* summed = std::get_if<SummedTurn>(&record)) {
    put(out, *summed);
  } else {
    std::visit([&](const auto& input) { put(out, input); }, std::get<RunEngine::Input>(record));
  }
  return out.SerializeAsString();
}

Result<JournalRecord> decode_record(std::string_view bytes) {
  Record record;
  if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{ErrorCode::kCorrupt, "it is not a journal record"};
  if (record.input_case() == Record::kLost) return JournalRecord(LostUpdate{record.lost()});
  if (record.input_case() == Record::kSummed) {
    auto summed = summed_of(record.summed());
    if (!summed) return Error{ErrorCode::kCorrupt, summed.error().message};
    return JournalRecord(std::move(*summed));
  }
  auto input = input_of(record);
  if (!input) return Error{ErrorCode::kCorrupt, input.error().message};
  return JournalRecord(std::move(*input));
}

}  // namespace fedge::server
