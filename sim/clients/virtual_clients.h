// VirtualClients: the daemons' client conductors on virtual devices; the Clients port of a simulation. It
// gives each conductor its inputs and implements its ports: connections in virtual time, and what the other
// parts of a device do. Decides nothing that a client would decide. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/conductor/task_conductor.h"
#include "server/conductor/conductor.h"
#include "sim/availability/presence.h"
#include "sim/clients/client_labels.h"
#include "sim/clients/dropouts.h"
#include "sim/clients/virtual_training.h"
#include "sim/directory/run_directory.h"
#include "sim/directory/virtual_records.h"
#include "sim/dissemination/virtual_exchange.h"
#include "sim/secure/virtual_secrets.h"
#include "sim/transfers/client_links.h"
#include "sim/transfers/virtual_downloads.h"
#include "sim/transfers/virtual_uploads.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualClients final : public server::Clients {
 public:
  struct Surroundings {
    World& world;
    const run::RunConfig& config;
    const learn::Task& task;
    const Devices& devices;
    const ClientLabels& labels;
    ClientLinks& links;
    Presence& presence;
    Dropouts& dropouts;
    VirtualDownloads& downloads;
    VirtualUploads& uploads;
    VirtualTraining& training;
    RunDirectory* directory;    // null: devices know the coordinator's address
    VirtualRecords* records;    // null: clients publish no records
    VirtualSecrets* secrets;    // null: updates are not masked
    VirtualExchange* exchange;  // null: the coordinator receives the updates
  };
  VirtualClients(const Surroundings& surroundings, std::size_t clients);
  // Call it before start().
  void answer_to(server::Conductor& conductor) { conductor_ = &conductor; }

  // Starts the clients whose devices are up.
  void start();
  // The client's device has come up or gone down.
  void device_changed(ClientId client);
  // Cuts the client's connection.
  void cut(ClientId client, const std::string& reason);
  void step(ClientId client, client::TaskConductor::Input input);
  // Sends from the client to the coordinator, if it is connected.
  void send_up(ClientId client, const protocol::Message& message);
  const client::ClientEngine& engine(ClientId client) const {
    return clients_[client.value()].conductor.engine();
  }

  bool connected(ClientId client) const override { return surroundings_.links.online(client); }
  PublicKey key_of(ClientId client) const override;
  std::optional<std::vector<std::string>> labels_of(ClientId client) const override {
    return surroundings_.labels.of(client);
  }
  void send(ClientId client, const protocol::Message& message) override;

 private:
  class Ports;
  struct Client {
    explicit Client(ClientId id) : conductor(id) {}

    client::TaskConductor conductor;
    std::optional<Time> timer;
  };
  Client& at(ClientId client) { return clients_[client.value()]; }
  void connect(ClientId client);
  void connect_to_coordinator(ClientId client);
  void connected_to_coordinator(ClientId client);
  // Fetches the run's tokenizer first if it is long, and prepares the run.
  void fetch_tokenizer(ClientId client, RunId run);
  void prepare(ClientId client, RunId run);
  void prepared(ClientId client, client::ClientEngine::RunPrepared prepared);
  void abandon(ClientId client, TaskId task);
  void describe(ClientId client, const protocol::RunDescription& run, Bytes size);
  void arm_timer(ClientId client);
  // Gives the client an input at this time, whatever happens to its connection.
  void step_at(Time when, ClientId client, client::ClientEngine::Input input);

  Surroundings surroundings_;
  std::vector<Client> clients_;
  std::shared_ptr<const protocol::RunDescription> description_;  // the last one that was sent
  // The parts of the run's tokenizer: the bytes of a request and of its answer. Empty if the tokenizer is in
  // the description.
  struct Part {
    Bytes up;
    Bytes down;
  };
  std::vector<Part> tokenizer_;
  struct Fetched {
    std::uint32_t parts = 0;
    bool asking = false;  // for the next one
  };
  std::vector<Fetched> fetched_;  // by client, if there are parts
  server::Conductor* conductor_ = nullptr;
};

}  // namespace fedge::sim
