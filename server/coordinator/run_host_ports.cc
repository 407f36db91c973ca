// RunHost, part 2: builds the ports of the conductor.
#include <utility>

#include "core/crypto/random.h"
#include "protocol/session/loop.h"
#include "server/coordinator/detail/run_host.h"

namespace fedge::server {

swarm::RoundWarmup::Seeds RunHost::random_seeds(TaskId) { return {random_u64(), random_u64()}; }

void RunHost::make_ports() {
  const auto tell = protocol::weakly(this, [this](const Event& event) { report(event); });
  uploads_->set_callbacks(
      {.on_outcome = protocol::weakly(this,
                                      [this](ClientId client, TaskId task, const Result<void>& outcome) {
                                        if (goes_on()) conductor_.uploaded(client, task, outcome, now());
                                      }),
       .on_event = tell});
  journal_->set_callbacks(
      {.on_durable = protocol::weakly(this, [this](std::uint64_t entry) { became_durable(entry); }),
       .on_failure = protocol::weakly(this, [this](const Error& error) { journal_failed(error); }),
       .on_event = tell});
  if (config().dissemination.serverless)
    exchange_ = std::make_shared<RunExchange>(RunExchange::Surroundings{
        .io = house_.io,
        .seeder = *house_.seeder,
        .models = *parts_.models,
        .is_current =
            [this](const protocol::ObjectId& model) {
              return state_.track({}).object()->manifest().id() == model;
            },
        .on_fetched = protocol::weakly(this,
                                       [this](const protocol::ObjectId& model, const Result<void>& outcome) {
                                         if (goes_on()) conductor_.fetched(model, outcome, now());
                                       }),
        .warmup_seeds = house_.warmup_seeds});
  lines_.emplace(ClientLines::Surroundings{
      .peers = house_.peers,
      .is_welcome = house_.is_welcome,
      .labels_of = house_.labels_of,
      .state = state_,
      .uploads = *uploads_,
      .transfers = *transfers_,
      .allowance = allowance_,
      .seeder = house_.seeder,
      .announcer = house_.announcer,
      .has_failed = [this] { return stopped_.empty() && !verdict_.failure().empty(); }});
  if (state_.split()) make_halves();
  make_aggregate();
  gate_.emplace(JournalGate::Surroundings{
      .journal = *journal_,
      .now = [this] { return now(); },
      .payload_of =
          [this](const RunEngine::Input& input) {
            const auto* stored = std::get_if<RunEngine::Stored>(&input);
            return stored != nullptr ? uploads_->arrived(stored->client) : nullptr;
          },
      .carry_out = [this](const Decision& decision) { conductor_.carry_out(decision, now()); },
      .clients_aggregate = config().dissemination.serverless});
  parts_.watch->begin(house_.on_task, house_.records);
  conductor_.take_over({&*lines_, &*lines_, &*lines_, exchange_.get(), &*aggregate_, &*gate_, this,
                        halves_.get(), parts_.watch.get()});
}

void RunHost::make_halves() {
  const HalfFiles files = halves_of(house_.data_directory, parts_.record.number);
  uploads_->join_with([this, files](ClientId client, TaskId task, run::StoredUpdate update) {
    return files.join(client, task.round, std::move(update), state_, *parts_.updates);
  });
  halves_ = std::make_shared<RunHalves>(RunHalves::Surroundings{
      .io = house_.io,
      .state = state_,
      .model = *parts_.model,
      .files = files,
      .data_directory = house_.data_directory,
      .send = [this](ClientId client, const protocol::Message& message) { lines_->send(client, message); },
      .may_err =
          [this](ClientId client) {
            if (allowance_.answer(client)) return true;
            house_.misbehaved(client, "more values than the coordinator could use");
            return false;
          },
      .on_event = [this](const Event& event) { report(event); },
      .on_failure = [this](const Error& error) { failed(error); }});
}

void RunHost::make_aggregate() {
  aggregate_.emplace(RunAggregate::Surroundings{
      .io = house_.io,
      .worker = worker_,
      .data_directory = house_.data_directory,
      .parts = parts_,
      .uploads = *uploads_,
      .exchange = exchange_.get(),
      .journal = *journal_,
      .alive = [weak = weak_from_this()] { return weak.lock(); },
      .now = [this] { return now(); },
      .traffic = [this] { return traffic_since_last_round(); },
      .on_summed =
          [this](const Result<MaskedSum>& sum) {
            if (goes_on()) conductor_.summed(sum, now());
          },
      .on_aggregated = [this](
                           const RunEngine::CloseRound& turn,
                           const std::optional<Error>& error) { conductor_.aggregated(turn, error, now()); },
      .on_closed =
          [this](const RunEngine::CloseRound& turn, bool aggregated, bool ends,
                 const std::optional<RoundMetrics>& metrics) { closed(turn, aggregated, ends, metrics); },
      .keep = callbacks_.on_kept,
      .on_event = [this](const Event& event) { report(event); },
      .on_failure = [this](const Error& error) { failed(error); }});
}

}  // namespace fedge::server
