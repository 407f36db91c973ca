// Effects of the virtual clients' engines.
#include <algorithm>
#include <utility>

#include "client/node_status.h"
#include "dht/node_record.h"
#include "protocol/chunks/chunk_selection.h"
#include "protocol/codec.h"
#include "server/access/arrival_rate.h"
#include "sim/simulation.h"

namespace fedge::sim {
namespace {

// Lowers the severity: the run file itself makes devices go down.
Event expected(Event event) {
  event.severity = std::min(event.severity, Severity::kInfo);
  return event;
}

}  // namespace

class Simulation::ClientPorts final : public client::Coordinator,
                                      public client::Work,
                                      public client::Keep,
                                      public client::Owner {
 public:
  ClientPorts(Simulation& simulation, ClientId id) : simulation_(simulation), id_(id) {}

  void connect() override { simulation_.connect(id_); }
  void disconnect(const std::string& reason) override {
    if (self().online) simulation_.cut(id_, reason.c_str());
  }
  void send(const protocol::Message& message) override { simulation_.client_sends(id_, message); }
  PublicKey key() const override { return {}; }  // all clients have one coordinator

  void prepare(const protocol::RunDescription& run) override { simulation_.prepare(id_, run.run); }
  void fetch(const client::ClientEngine::FetchModel& model) override { simulation_.fetch_model(id_, model); }
  void train(const client::ClientEngine::Train& training) override { simulation_.train(id_, training); }
  void mask(RunId, TaskId task, privacy::Masking masking) override {
    simulation_.mask(id_, task, std::move(masking));
  }
  void abandon(RunId, TaskId task) override { simulation_.abandon(id_, task); }
  void forget(RunId) override {}
  void publish(const client::ClientEngine::Publish& record) override { simulation_.publish(id_, record); }

  const SecretKey& identity() override { return simulation_.secrets_->identity(id_); }
  Entropy entropy(const protocol::SecureSession& session) override {
    return simulation_.secrets_->entropy(id_, session);
  }
  // The keys of virtual clients come from the run's seed: none can be replaced.
  client::KnownClients* known_clients() override { return nullptr; }
  void write_known_clients() override {}
  client::SummedUpdates& summed_updates() override { return simulation_.secrets_->summed_updates(id_); }
  void write_sum(const protocol::SecureSession& session, const client::SummedUpdates::Record&) override {
    simulation_.step_client(id_, client::TaskConductor::SumWritten{session, {}});
  }

  void report(const Event& event) override {
    if (event.severity == Severity::kDebug) return;  // a simulation has no debug log
    simulation_.report(self().phase.up ? event : expected(event));
  }
  void run_ended() override {}
  void revoked(const std::string&) override {}  // keys of simulated clients are never revoked
  void finished() override {}
  void settled() override { simulation_.arm_client_timer(id_); }

 private:
  VirtualClient& self() { return simulation_.at(id_); }

  Simulation& simulation_;
  ClientId id_;
};

void Simulation::step_client(ClientId id, client::TaskConductor::Input input) {
  ClientPorts ports(*this, id);
  const Rng rng = root_.fork("client", id.value());
  if (!exchange_) return at(id).conductor.step(std::move(input), {now_, rng, {ports, ports, ports, ports}});
  VirtualPeers peers(*exchange_, *swarm_, id);
  at(id).conductor.step(std::move(input), {now_, rng, {ports, ports, ports, ports, &peers}});
}

void Simulation::abandon(ClientId id, TaskId task) {
  VirtualClient& client = at(id);
  pool_.drop(id);
  end_download(id, now_, now_ - 2 * latency(id));
  if (client.exchanging) swarm_->close(id);
  client.exchanging.reset();
  client.models.erase(task);
  client.unmasked.reset();
}

void Simulation::connect(ClientId id) {
  VirtualClient& client = at(id);
  if (now_ < client.offline_until) {
    schedule(now_ + latency(id), id,
             ClientInput{client::ClientEngine::Disconnected{{ErrorCode::kUnavailable, "no network"}},
                         client.session});
    return;
  }
  if (directory_) return find_coordinator(id);
  connect_to_coordinator(id);
}

void Simulation::connect_to_coordinator(ClientId id) {
  VirtualClient& client = at(id);
  // TCP, TLS 1.3 and Hello/Welcome take two and a half round trips until the coordinator knows the client.
  client.online = true;
  ++client.session;
  schedule(now_ + 5 * latency(id), id, Arrive{client.session});
  // A coordinator expects all its clients back at once, whatever made this one disconnect.
  const Duration spread = server::ArrivalRate().spread(clients_.size());
  schedule(now_ + 6 * latency(id), id,
           ClientInput{
               client::ClientEngine::Connected{
                   {.software = "fedge-sim", .client = id, .runs = {state_.config().id}, .spread = spread}},
               client.session});
}

void Simulation::prepare(ClientId id, RunId run) {
  const SampleCount samples(task_.samples_of(id).size());
  // The number of samples is hidden with secure aggregation and with local differential privacy.
  const bool is_private = state_.config().privacy.kind == run::DifferentialPrivacySpec::Kind::kLocal;
  const SampleCount told = secrets_ || is_private ? SampleCount(1) : samples;
  client::ClientEngine::Input outcome = client::ClientEngine::RunPrepared{
      run, told, device(id).capability(), state_.config().status.every, state_.config().secure.on};
  if (samples.value() == 0)
    outcome =
        client::ClientEngine::RunRejected{run, invalid("this client has no training samples in this run")};
  schedule(now_, id, ClientInput{std::move(outcome), at(id).session});
}

void Simulation::fetch_model(ClientId id, const client::ClientEngine::FetchModel& fetch) {
  VirtualClient& client = at(id);
  if (!client.files) client.files = std::make_unique<DeviceFiles>();
  const auto shared = [](DeviceFiles::Manifest& last, const protocol::Manifest& manifest) {
    if (!last || *last != manifest) last = std::make_shared<const protocol::Manifest>(manifest);
    return last;
  };
  DeviceFiles::Needed needed{.model = shared(fetched_, fetch.model), .chunks = {}, .frozen = task_.frozen()};
  if (needed.frozen)
    needed.chunks = protocol::chunks_of(fetch.model, task_.needed(client.engine().task(fetch.run)->coverage));
  if (fetch.control) needed.control = shared(fetched_control_, *fetch.control);
  client.files->begin(needed);
  if (swarm_) return exchange_model(id, fetch);
  download(id, fetch.run, fetch.task);
}

void Simulation::download(ClientId id, RunId run, TaskId task) {
  VirtualClient& client = at(id);
  const Bytes size = client.files->missing();
  if (size == Bytes())
    return schedule(now_, id, ClientInput{client::ClientEngine::ModelFetched{run, task}, client.session});
  const Line::Transfer transfer = client.down.begin(now_, size, device(id).download_time(size));
  traffic_down_.add(size);
  client.download = Download{++transfers_, run, task, transfer};
  // The request travels up, then the model down.
  schedule(transfer.end + 2 * latency(id), id, Downloaded{transfers_});
}

void Simulation::end_download(ClientId id, Time sent, Time kept) {
  const auto download = std::exchange(at(id).download, std::nullopt);
  if (!download) return;
  at(id).down.end(download->transfer, sent);
  traffic_down_.remove(download->transfer.size - download->transfer.passed(sent));
  at(id).files->arrived(download->transfer.passed(kept));
}

void Simulation::publish(ClientId id, const client::ClientEngine::Publish& publish) {
  NodeRecord record =
      client::describe_node(publish,
                            {.latency_ms = 2000 * to_seconds(latency(id)),
                             .utility = at(id).utility,
                             .labels = client::published_labels(task_, id, state_.config().status,
                                                                root_.fork("label noise", id.value()))},
                            state_.config().status, {});
  record.sequence = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  if (nodes_->in_directory()) return publish_in_directory(id, publish.run, record);
  auto value = dht::encode_node_record(record);
  if (!value) return fail(value.error());
  protocol::PublishRecord message{publish.run, publish.round, record.sequence, std::move(*value)};
  schedule(up_arrival(id, Bytes(protocol::frame_size(message))), id,
           Published{std::move(message), at(id).session});
}

void Simulation::record_arrived(ClientId id, const protocol::PublishRecord& record) {
  const auto kept = nodes_->received(id, record, now_);
  if (!kept && kept.error().code != ErrorCode::kStale) fail(kept.error());
}

void Simulation::train(ClientId id, const client::ClientEngine::Train& start) {
  const learn::TrainingSpec& spec = task_.spec().training;
  const protocol::TrainRequest& request = *at(id).engine().task(start.run);
  const SampleCount samples =
      learn::trained_samples(SampleCount(task_.samples_of(id).size()), request.data_share);
  const auto ends = client::training_ends(spec, start.asked, start.time_left);
  const Device::Training training = device(id).training(samples, spec, ends ? *ends - now_ : Duration::max());
  const Time finish = now_ + training.time;
  at(id).training_ends = finish;
  pool_.enqueue(id, {.task = start.task,
                     .data_share = request.data_share,
                     .coverage = start.coverage,
                     .last_round = request.last_round,
                     .global = at(id).models.at(start.task),
                     .finish = finish,
                     .max_steps = training.max_steps,
                     .flip_labels = adversary_.flips_labels(id)});
  // The rest is known at the end of training. No bytes are transferred, so chunks are not hashed.
  client::ClientEngine::Trained trained{
      start.run, start.task, {.run = start.run, .round = start.task.round, .track = start.task.track}};
  schedule(finish, id, ClientInput{std::move(trained), at(id).session});
}

void Simulation::client_sends(ClientId id, const protocol::Message& message) {
  if (!at(id).online) return;
  schedule(up_arrival(id, Bytes(protocol::frame_size(message))), id, ToCoordinator{message, at(id).session});
}

}  // namespace fedge::sim
