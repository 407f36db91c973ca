// Converts the contents of records to and from their messages.
#include <algorithm>
#include <limits>
#include <string>

#include "core/node.h"
#include "core/text.h"
#include "dht/detail/wire.h"
#include "protocol/limits.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kMaxAddress = 253 + 2 + 6;  // a host, brackets, a port

template <class Array>
std::string text_of(const Array& bytes) {
  return {bytes.begin(), bytes.end()};
}

// Parses an address; accepts only its canonical spelling.
Result<protocol::Address> address_of(const std::string& text) {
  if (text.size() > kMaxAddress)
    return invalid("its address has " + std::to_string(text.size()) +
                   " bytes, more than an address can have");
  auto parsed = protocol::parse_address(text);
  if (parsed && parsed->port != 0 && protocol::to_string(*parsed) == text) return parsed;
  return invalid("'" + clean_text(text, kMaxAddress) + "' is not an address; expected HOST:PORT");
}

template <class Texts>
Result<std::vector<protocol::Address>> addresses_of(const Texts& texts, std::size_t most, const char* whose) {
  if (texts.empty() || static_cast<std::size_t>(texts.size()) > most)
    return invalid(std::to_string(texts.size()) + " addresses of " + whose + "; expected 1 to " +
                   std::to_string(most));
  std::vector<protocol::Address> addresses;
  for (const std::string& text : texts) {
    FEDGE_TRY(address, address_of(text));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

Result<Content> content_of(const wire::Announcement& in) {
  Announcement announcement{.addresses = {}, .run_name = in.run_name(), .run = RunId(in.run())};
  FEDGE_TRY(addresses, addresses_of(in.addresses(), kMaxAddresses, "a coordinator"));
  announcement.addresses = std::move(addresses);
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
  if (!take_bytes(in.manifest(), model.manifest)) return invalid("its manifest id does not have 32 bytes");
  return Content(model);
}

Result<Content> content_of(const wire::PeerList& in) {
  PeerList list;
  if (!take_bytes(in.object(), list.object)) return invalid("its object id does not have 32 bytes");
  FEDGE_TRY(addresses, addresses_of(in.addresses(), kMaxListedPeers, "peers"));
  if (in.keys_size() != in.addresses_size())
    return invalid("the number of keys differs from the number of peers");
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    list.peers.push_back({std::move(addresses[i]), {}});
    if (!take_bytes(in.keys(static_cast<int>(i)), list.peers.back().key.bytes))
      return invalid("the key of a peer does not have 32 bytes");
  }
  return Content(std::move(list));
}

void put(const Announcement& in, wire::DirectoryRecord& out) {
  auto* made = out.mutable_announcement();
  for (const auto& address : in.addresses) made->add_addresses(protocol::to_string(address));
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
    made->add_addresses(protocol::to_string(peer.address));
    made->add_keys(text_of(peer.key.bytes));
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
  return Error{ErrorCode::kUnsupported,
               "its content is of a type that this program does not know; update this program"};
}

const char* name_of(const Content& content) {
  return std::visit(
      Overloaded{[](const Announcement&) { return "coordinator"; }, [](const NodeStatus&) { return "node"; },
                 [](const ModelPointer&) { return "model"; }, [](const PeerList&) { return "peers"; }},
      content);
}

}  // namespace fedge::dht
