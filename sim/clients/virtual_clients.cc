#include "sim/clients/virtual_clients.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "protocol/codec.h"
#include "run/file/tokenizer_parts.h"
#include "server/access/arrival_rate.h"

namespace fedge::sim {
namespace {

using Engine = client::ClientEngine;

// Lowers the severity: the run file itself makes devices go down.
Event expected(Event event) {
  event.severity = std::min(event.severity, Severity::kInfo);
  return event;
}

}  // namespace

// The ports of one client's conductor, for one step.
class VirtualClients::Ports final : public client::Coordinator,
                                    public client::Work,
                                    public client::Keep,
                                    public client::Owner {
 public:
  Ports(VirtualClients& clients, ClientId id)
      : clients_(clients), surroundings_(clients.surroundings_), id_(id) {}

  void connect() override { clients_.connect(id_); }
  void disconnect(const std::string& reason) override {
    if (clients_.connected(id_)) clients_.cut(id_, reason);
  }
  void send(const protocol::Message& message) override { clients_.send_up(id_, message); }
  PublicKey identity() const override { return {}; }  // all clients have one coordinator

  void prepare(const protocol::RunDescription& run) override { clients_.fetch_tokenizer(id_, run.run); }
  void fetch(const Engine::FetchModel& model) override {
    surroundings_.downloads.fetch(id_, model, clients_.engine(id_).task(model.run)->coverage);
  }
  void train(const Engine::Train& training) override {
    surroundings_.training.start(id_, training, *clients_.engine(id_).task(training.run));
  }
  void train_ahead(const Engine::TrainAhead& ahead) override {
    surroundings_.training.start_ahead(id_, ahead);
  }
  void abandon_ahead(RunId) override { surroundings_.training.abandon_ahead(id_); }
  void mask(RunId, TaskId task, privacy::Masking masking) override {
    surroundings_.training.mask(id_, task, std::move(masking));
  }
  void abandon(RunId, TaskId task) override { clients_.abandon(id_, task); }
  void forget(RunId) override {}
  void publish(const Engine::Publish& record) override {
    surroundings_.records->publish(id_, record, surroundings_.training.utility(id_));
  }

  const SecretKey& identity() override { return surroundings_.secrets->identity(id_); }
  Entropy entropy(const protocol::SecureSession& session) override {
    return surroundings_.secrets->entropy(id_, session);
  }
  // The keys of virtual clients come from the run's seed: none can be replaced.
  client::KnownClients* known_clients() override { return nullptr; }
  void write_known_clients() override {}
  client::SummedUpdates& summed_updates() override { return surroundings_.secrets->summed_updates(id_); }
  void write_sum(const protocol::SecureSession& session, const client::SummedUpdates::Record&) override {
    clients_.step(id_, client::TaskConductor::SumWritten{session, {}});
  }

  void report(const Event& event) override {
    if (event.severity == Severity::kDebug) return;  // a simulation has no debug log
    Event said = surroundings_.presence.up(id_) ? event : expected(event);
    const bool names =
        std::ranges::any_of(said.fields, [](const auto& field) { return field.first == "client"; });
    if (!names) said.with("client", std::int64_t{id_.value()});
    surroundings_.world.report(said);
  }
  void run_ended(const std::optional<Error>&) override {}
  void revoked(const std::string&) override {}  // keys of simulated clients are never revoked
  void finished() override {}
  void settled() override { clients_.arm_timer(id_); }

 private:
  VirtualClients& clients_;
  const Surroundings& surroundings_;
  ClientId id_;
};

VirtualClients::VirtualClients(const Surroundings& surroundings, std::size_t clients)
    : surroundings_(surroundings) {
  protocol::TokenizerRequest asked{surroundings_.config.id};
  while (const auto part = run::tokenizer_part(surroundings_.config, asked)) {
    tokenizer_.push_back({Bytes(protocol::frame_size(asked)), Bytes(protocol::frame_size(*part))});
    asked.offset += static_cast<std::uint32_t>(part->bytes.size());
  }
  if (!tokenizer_.empty()) fetched_.resize(clients);
  clients_.reserve(clients);
  for (std::uint32_t i = 0; i < clients; ++i) clients_.emplace_back(ClientId(i));
}

void VirtualClients::start() {
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    const ClientId id(i);
    if (!surroundings_.presence.begin(id)) continue;
    if (surroundings_.directory != nullptr) surroundings_.directory->device_up(id);
    step(id, Engine::Start{});
  }
}

// A device that goes down loses its connection and what is in memory: training in progress, and the secrets
// of a secure session. Chunks of models, and a finished update, stay on its disk; it offers the update after
// it comes up. A device that comes up connects at once.
void VirtualClients::device_changed(ClientId client) {
  RunDirectory* const directory = surroundings_.directory;
  if (surroundings_.presence.up(client)) {
    if (directory != nullptr) directory->device_up(client);
    return step(client, Engine::Start{});
  }
  if (directory != nullptr) directory->device_down(client);
  if (connected(client)) cut(client, "the device went down");
  step(client, client::TaskConductor::PowerCut{});
  surroundings_.downloads.restarted(client);
  surroundings_.training.restarted(client);
}

void VirtualClients::step(ClientId client, client::TaskConductor::Input input) {
  Ports ports(*this, client);
  const Rng rng = surroundings_.world.root().fork("client", client.value());
  std::optional<VirtualPeers> peers;
  if (surroundings_.exchange != nullptr) peers.emplace(*surroundings_.exchange, client);
  at(client).conductor.step(
      std::move(input),
      {surroundings_.world.now(), rng, {ports, ports, ports, ports, peers ? &*peers : nullptr}});
}

void VirtualClients::step_at(Time when, ClientId client, Engine::Input input) {
  surroundings_.world.at(when, [this, client, input = std::move(input)] { step(client, input); });
}

void VirtualClients::arm_timer(ClientId client) {
  Client& self = at(client);
  const auto deadline = self.conductor.next_deadline();
  if (!deadline || self.timer == deadline || !surroundings_.presence.up(client)) return;
  self.timer = deadline;
  surroundings_.world.at(*deadline, [this, client] {
    at(client).timer.reset();
    if (surroundings_.presence.up(client)) step(client, Expired{});
  });
}

void VirtualClients::cut(ClientId client, const std::string& reason) {
  surroundings_.uploads.lost(client);
  surroundings_.downloads.lost(client);
  surroundings_.training.lost(client);
  surroundings_.links.disconnect(client);
  step(client, Engine::Disconnected{{ErrorCode::kUnavailable, reason}});
  conductor_->left(client, false, surroundings_.world.now());
}

void VirtualClients::connect(ClientId client) {
  const Time now = surroundings_.world.now();
  if (surroundings_.dropouts.offline(client))
    return step_at(now + surroundings_.devices.latency(client), client,
                   Engine::Disconnected{{ErrorCode::kUnavailable, "no network"}});
  if (surroundings_.directory == nullptr) return connect_to_coordinator(client);
  surroundings_.directory->find_coordinator(client, [this, client](bool found) {
    if (found && surroundings_.presence.up(client)) return connect_to_coordinator(client);
    step_at(
        surroundings_.world.now(), client,
        Engine::Disconnected{{ErrorCode::kUnavailable, "the directory has no record of the coordinator"}});
  });
}

void VirtualClients::connect_to_coordinator(ClientId client) {
  ClientLinks& links = surroundings_.links;
  const Time now = surroundings_.world.now();
  const Duration latency = surroundings_.devices.latency(client);
  // TCP, TLS 1.3 and Hello/Welcome take two and a half round trips until the coordinator knows the client.
  links.connect(client);
  links.while_connected(client, now + 5 * latency, [this, client, latency] {
    surroundings_.links.while_connected(client, surroundings_.world.now() + latency,
                                        [this, client] { connected_to_coordinator(client); });
    if (surroundings_.records != nullptr) surroundings_.records->linked(client);
    conductor_->linked(client, surroundings_.world.now());
  });
}

// A coordinator expects all its clients back at once, whatever made this one disconnect.
void VirtualClients::connected_to_coordinator(ClientId client) {
  step(client, Engine::Connected{{.software = "fedge-sim",
                                  .client = client,
                                  .runs = {surroundings_.config.id},
                                  .spread = server::ArrivalRate().spread(clients_.size())}});
}

// The messages are those of client/device/tokenizer_fetches.h.
void VirtualClients::fetch_tokenizer(ClientId client, RunId run) {
  if (tokenizer_.empty()) return prepare(client, run);
  Fetched& fetched = fetched_[client.value()];
  fetched.asking = fetched.parts < tokenizer_.size();
  if (!fetched.asking) return prepare(client, run);
  const Part& part = tokenizer_[fetched.parts];
  surroundings_.links.send_up(client, part.up, [this, client, run, down = part.down] {
    surroundings_.links.send_down(client, down, [this, client, run] {
      ++fetched_[client.value()].parts;
      fetch_tokenizer(client, run);
    });
  });
}

void VirtualClients::prepare(ClientId client, RunId run) {
  const run::RunConfig& config = surroundings_.config;
  const Time now = surroundings_.world.now();
  const SampleCount samples = surroundings_.task.sample_count(client);
  const SampleCount evaluates = surroundings_.task.evaluation_samples(client);
  if (samples.value() == 0 && evaluates.value() == 0)
    return step_at(now, client,
                   Engine::RunRejected{run, invalid("this client has no training samples in this run")});
  // The number of samples is hidden with secure aggregation and with local differential privacy.
  const bool is_private = config.privacy.kind == run::DifferentialPrivacySpec::Kind::kLocal;
  const bool hidden = surroundings_.secrets != nullptr || is_private;
  const auto shown = [&](SampleCount count) { return hidden ? std::min(count, SampleCount(1)) : count; };
  const Engine::RunPrepared outcome{
      run,
      shown(samples),
      surroundings_.devices.of(client).capability(),
      config.status.every,
      config.secure.on,
      shown(evaluates),
      surroundings_.task.spec().training.overlap != learn::OverlapKind::kNone,
      hidden || !config.status.power ? nullptr : surroundings_.devices.power(client)};
  surroundings_.world.at(now, [this, client, outcome] { prepared(client, outcome); });
}

void VirtualClients::prepared(ClientId client, Engine::RunPrepared prepared) {
  const VirtualSecrets* const secrets = surroundings_.secrets;
  const bool serverless = surroundings_.exchange != nullptr;
  if (secrets == nullptr && !serverless) return step(client, prepared);
  step(client, client::TaskConductor::Prepared{.name = surroundings_.config.name,
                                               .masked = secrets != nullptr ? secrets->run() : nullptr,
                                               .serverless = serverless,
                                               .run = prepared});
}

void VirtualClients::abandon(ClientId client, TaskId task) {
  surroundings_.training.abandon(client, task);
  surroundings_.downloads.abandon(client);
}

// A message on its way is kept as what it is: a Message is as large as the largest of them.
void VirtualClients::send_up(ClientId client, const protocol::Message& message) {
  if (!connected(client)) return;
  const Bytes size(protocol::frame_size(message));
  std::visit(
      [&](const auto& said) {
        surroundings_.links.send_up(client, size, [this, client, said] {
          conductor_->received(client, said, surroundings_.world.now());
        });
      },
      message);
}

PublicKey VirtualClients::key_of(ClientId client) const {
  return surroundings_.secrets != nullptr ? surroundings_.secrets->identity(client).public_key()
                                          : PublicKey{};
}

// All clients get the same description, of a few kilobytes, perhaps all at the same time.
void VirtualClients::describe(ClientId client, const protocol::RunDescription& run, Bytes size) {
  if (!description_ || *description_ != run)
    description_ = std::make_shared<const protocol::RunDescription>(run);
  surroundings_.links.send_down(client, size, [this, client, shared = description_] {
    // The answer to its last request was lost with its connection.
    const bool goes_on = !fetched_.empty() && fetched_[client.value()].asking;
    step(client, Engine::Received{*shared});
    if (goes_on) fetch_tokenizer(client, shared->run);
  });
}

void VirtualClients::send(ClientId client, const protocol::Message& message) {
  surroundings_.dropouts.note(client, message);
  if (!connected(client)) return;
  const Bytes size(protocol::frame_size(message));
  if (const auto* run = std::get_if<protocol::RunDescription>(&message)) return describe(client, *run, size);
  std::visit(
      [&](const auto& said) {
        surroundings_.links.send_down(client, size, [this, client, said] {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(said)>, protocol::TrainRequest>)
            surroundings_.training.arrived(client, said.task());
          step(client, Engine::Received{said});
        });
      },
      message);
}

}  // namespace fedge::sim
