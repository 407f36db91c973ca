// ClientLinks: the connections between virtual clients and the coordinator: which ones are open, the lines
// that carry their bytes, and how many bytes they carried. What arrives after its connection was lost is
// dropped, also if the client has connected again. One thread. Memory: 24 bytes a client.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "sim/devices.h"
#include "sim/energy/energy_meter.h"
#include "sim/transfers/line.h"
#include "sim/world.h"

namespace fedge::sim {

class ClientLinks {
 public:
  // `energy`: meters what the radios of devices consume; null: nothing does. The arguments must outlive the
  // object.
  ClientLinks(World& world, const Devices& devices, std::size_t clients, EnergyMeter* energy = nullptr)
      : world_(world), devices_(devices), energy_(energy), links_(clients) {}

  void connect(ClientId client);
  // The connection is lost, and with it everything that was being sent.
  void disconnect(ClientId client);
  bool online(ClientId client) const { return links_[client.value()].online; }
  // Returns the number of the client's last connection.
  std::uint32_t session(ClientId client) const { return links_[client.value()].session; }

  // Schedules a call, which is dropped if the client's connection is lost before.
  template <class What>
  void while_connected(ClientId client, Time when, What what) {
    world_.at(when, [this, client, number = session(client), what = std::move(what)] {
      if (online(client) && session(client) == number) what();
    });
  }
  // Sends bytes to the client, or to the coordinator. Calls `what` on arrival over this connection.
  template <class What>
  void send_down(ClientId client, Bytes bytes, What what) {
    while_connected(client, down_arrival(client, bytes), std::move(what));
  }
  template <class What>
  void send_up(ClientId client, Bytes bytes, What what) {
    while_connected(client, up_arrival(client, bytes), std::move(what));
  }
  // Sends bytes now. Returns when they arrive.
  Time down_arrival(ClientId client, Bytes bytes);
  Time up_arrival(ClientId client, Bytes bytes);

  // Bulk transfers. After the end of one its line is free from `sent` on, and later bytes do not count.
  Line::Transfer begin_download(ClientId client, Bytes bytes);
  void end_download(ClientId client, const Line::Transfer& transfer, Time sent);
  Line::Transfer begin_upload(ClientId client, Bytes bytes);
  void end_upload(ClientId client, const Line::Transfer& transfer, Time sent);

  // A transfer from one client to another.
  void meter_exchange(ClientId from, ClientId to, Bytes bytes);
  // The lines, for transfers between clients, which do not count.
  Line& down(ClientId client) { return links_[client.value()].down; }
  Line& up(ClientId client) { return links_[client.value()].up; }

  struct Traffic {
    Bytes up;
    Bytes down;
  };
  // Returns what clients and coordinator have exchanged since the last call.
  Traffic take_traffic() { return {traffic_up_.take(), traffic_down_.take()}; }

 private:
  void meter(ClientId client, Activity activity, const Line::Transfer& transfer);

  struct Link {
    Line down;
    Line up;
    std::uint32_t session = 0;  // counts connections
    bool online = false;
  };
  World& world_;
  const Devices& devices_;
  EnergyMeter* energy_;
  std::vector<Link> links_;
  ByteCount traffic_up_;
  ByteCount traffic_down_;
};

}  // namespace fedge::sim
