// The contents of records, to and from their messages.
#include <algorithm>
#include <limits>
#include <string>

#include "core/node.h"
#include "core/text.h"
#include "dht/detail/wire.h"
#include "protocol/limits.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kMaxHost = 253;

template <std::size_t kSize>
bool take_bytes(const std::string& text, std::array<std::uint8_t, kSize>& out) {
  if (text.size() != kSize) return false;
  std::copy(text.begin(), text.end(), out.begin());
  return true;
}

template <class Array>
std::string text_of(const Array& bytes) {
  return {bytes.begin(), bytes.end()};
}

void put(const protocol::Address& address, wire::Address& out) {
  out.set_host(address.host);
  out.set_port(address.port);
}

// As one that is written down: what cannot be read back as it is does not count.
Result<protocol::Address> address_of(const wire::Address& in) {
  const Error wrong = invalid("'" + clean_text(in.host(), kMaxHost) + "', port " + std::to_string(in.port()) +
                              " is not an address");
  if (in.port() == 0 || in.port() > std::numeric_limits<std::uint16_t>::max() || in.host().size() > kMaxHost)
    return wrong;
  const protocol::Address address{in.host(), static_cast<std::uint16_t>(in.port())};
  const auto parsed = protocol::parse_address(protocol::to_string(address));
  if (!parsed || *parsed != address) return wrong;
  return address;
}

Result<Content> content_of(const wire::Announcement& in) {
  Announcement announcement{.addresses = {}, .run_name = in.run_name(), .run = RunId(in.run())};
  if (in.addresses().empty() || static_cast<std::size_t>(in.addresses_size()) > kMaxAddresses)
    return invalid(std::to_string(in.addresses_size()) + " addresses of a coordinator, expected 1 to " +
                   std::to_string(kMaxAddresses));
  for (const wire::Address& item : in.addresses()) {
    FEDGE_TRY(address, address_of(item));
    announcement.addresses.push_back(std::move(address));
  }
  FEDGE_TRY_VOID(check_text(in.run_name(), protocol::kMaxText, "the run's name"));
  return Content(std::move(announcement));
}

Result<Content> content_of(const wire::NodeStatus& in) {
  FEDGE_TRY(record, from_wire(in));
  return Content(NodeStatus{RunId(in.run()), std::move(record)});
}

Result<Content> content_of(const wire::ModelPointer& in) {
  ModelPointer model{.run = RunId(in.run()),
                     .track = TrackId(in.track()),
                     .round = RoundNumber(in.round()),
                     .size = Bytes(in.bytes())};
  if (!take_bytes(in.manifest(), model.manifest)) return invalid("a manifest's id of other than 32 bytes");
  return Content(model);
}

Result<Content> content_of(const wire::PeerList& in) {
  PeerList list;
  if (!take_bytes(in.object(), list.object)) return invalid("an object's id of other than 32 bytes");
  if (in.peers().empty() || static_cast<std::size_t>(in.peers_size()) > kMaxListedPeers)
    return invalid(std::to_string(in.peers_size()) + " peers, expected 1 to " +
                   std::to_string(kMaxListedPeers));
  for (const wire::PeerList::Peer& item : in.peers()) {
    PeerList::Peer peer;
    FEDGE_TRY(address, address_of(item.address()));
    peer.address = std::move(address);
    if (!take_bytes(item.key(), peer.key.bytes)) return invalid("a peer's key of other than 32 bytes");
    list.peers.push_back(std::move(peer));
  }
  return Content(std::move(list));
}

void put(const Announcement& in, wire::DirectoryRecord& out) {
  auto* made = out.mutable_announcement();
  for (const auto& address : in.addresses) put(address, *made->add_addresses());
  made->set_run_name(in.run_name);
  made->set_run(in.run.value());
}
void put(const NodeStatus& in, wire::DirectoryRecord& out) {
  auto* made = out.mutable_node();
  to_wire(in.record, *made);
  made->clear_sequence();  // the record's own
  made->set_run(in.run.value());
}
void put(const ModelPointer& in, wire::DirectoryRecord& out) {
  auto* made = out.mutable_model();
  made->set_run(in.run.value());
  made->set_track(in.track.value());
  made->set_round(in.round.value());
  made->set_manifest(text_of(in.manifest));
  made->set_bytes(in.size.value());
}
void put(const PeerList& in, wire::DirectoryRecord& out) {
  auto* made = out.mutable_peers();
  made->set_object(text_of(in.object));
  for (const auto& peer : in.peers) {
    auto* item = made->add_peers();
    put(peer.address, *item->mutable_address());
    item->set_key(text_of(peer.key.bytes));
  }
}

}  // namespace

void to_wire(const Content& content, wire::DirectoryRecord& out) {
  std::visit([&](const auto& what) { put(what, out); }, content);
}

Result<Content> content_from_wire(const wire::DirectoryRecord& record) {
  switch (record.content_case()) {
    case wire::DirectoryRecord::kAnnouncement:
      return content_of(record.announcement());
    case wire::DirectoryRecord::kNode:
      return content_of(record.node());
    case wire::DirectoryRecord::kModel:
      return content_of(record.model());
    case wire::DirectoryRecord::kPeers:
      return content_of(record.peers());
    case wire::DirectoryRecord::CONTENT_NOT_SET:
      break;
  }
  return Error{ErrorCode::kUnsupported, "a content that this program does not know"};
}

const char* name_of(const Content& content) {
  return std::visit(
      Overloaded{[](const Announcement&) { return "coordinator"; }, [](const NodeStatus&) { return "node"; },
                 [](const ModelPointer&) { return "model"; }, [](const PeerList&) { return "peers"; }},
      content);
}

}  // namespace fedge::dht
