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
  traffic_down_.add(bytes);
  return down(client).send(world_.now(), devices_.of(client).download_time(bytes)) + devices_.latency(client);
}

Time ClientLinks::up_arrival(ClientId client, Bytes bytes) {
  traffic_up_.add(bytes);
  return up(client).send(world_.now(), devices_.of(client).upload_time(bytes)) + devices_.latency(client);
}

Line::Transfer ClientLinks::begin_download(ClientId client, Bytes bytes) {
  traffic_down_.add(bytes);
  return down(client).begin(world_.now(), bytes, devices_.of(client).download_time(bytes));
}

void ClientLinks::end_download(ClientId client, const Line::Transfer& transfer, Time sent) {
  down(client).end(transfer, sent);
  traffic_down_.remove(transfer.size - transfer.passed(sent));
}

Line::Transfer ClientLinks::begin_upload(ClientId client, Bytes bytes) {
  return up(client).begin(world_.now(), bytes, devices_.of(client).upload_time(bytes));
}

void ClientLinks::end_upload(ClientId client, const Line::Transfer& transfer, Time sent) {
  up(client).end(transfer, sent);
  traffic_up_.add(transfer.passed(sent));
}

}  // namespace fedge::sim
