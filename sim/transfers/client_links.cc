#include "sim/transfers/client_links.h"

namespace fedge::sim {

void ClientLinks::connect(ClientId client) {
  Link& link = links_[client.value()];
  link.online = true;
  ++link.session;
}

void ClientLinks::disconnect(ClientId client) {
  Link& link = links_[client.value()];
  link.online = false;
  link.down.cut(world_.now());
  link.up.cut(world_.now());
}

Time ClientLinks::down_arrival(ClientId client, Bytes bytes) {
  const Duration takes = devices_.of(client).download_time(bytes);
  traffic_down_.add(bytes);
  if (energy_ != nullptr) energy_->message(client, EnergyUse::kReceiving, takes);
  return down(client).send(world_.now(), takes) + devices_.latency(client);
}

Time ClientLinks::up_arrival(ClientId client, Bytes bytes) {
  const Duration takes = devices_.of(client).upload_time(bytes);
  traffic_up_.add(bytes);
  if (energy_ != nullptr) energy_->message(client, EnergyUse::kSending, takes);
  return up(client).send(world_.now(), takes) + devices_.latency(client);
}

void ClientLinks::meter(ClientId client, Activity activity, const Line::Transfer& transfer) {
  if (energy_ != nullptr)
    energy_->begin(client, activity, energy_->watts_of(activity), transfer.begin, transfer.end);
}

Line::Transfer ClientLinks::begin_download(ClientId client, Bytes bytes) {
  traffic_down_.add(bytes);
  const auto transfer = down(client).begin(world_.now(), bytes, devices_.of(client).download_time(bytes));
  meter(client, Activity::kReceiving, transfer);
  return transfer;
}

void ClientLinks::end_download(ClientId client, const Line::Transfer& transfer, Time sent) {
  down(client).end(transfer, sent);
  traffic_down_.remove(transfer.size - transfer.passed(sent));
  if (energy_ != nullptr) energy_->end(client, Activity::kReceiving, sent);
}

Line::Transfer ClientLinks::begin_upload(ClientId client, Bytes bytes) {
  const auto transfer = up(client).begin(world_.now(), bytes, devices_.of(client).upload_time(bytes));
  meter(client, Activity::kSending, transfer);
  return transfer;
}

void ClientLinks::end_upload(ClientId client, const Line::Transfer& transfer, Time sent) {
  up(client).end(transfer, sent);
  traffic_up_.add(transfer.passed(sent));
  if (energy_ != nullptr) energy_->end(client, Activity::kSending, sent);
}

void ClientLinks::meter_exchange(ClientId from, ClientId to, Bytes bytes) {
  if (energy_ == nullptr) return;
  energy_->message(from, EnergyUse::kSending, devices_.of(from).upload_time(bytes));
  energy_->message(to, EnergyUse::kReceiving, devices_.of(to).download_time(bytes));
}

}  // namespace fedge::sim
