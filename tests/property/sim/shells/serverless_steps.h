// What clients do at random in a serverless run, besides what all clients do: fetch each other's updates,
// report them, aggregate a model and let the coordinator fetch it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "tests/property/sim/shells/two_shells.h"

namespace fedge::server::shells {

class ServerlessSteps {
 public:
  ServerlessSteps(TwoShells& shells, Rng draws) : shells_(shells), draws_(std::move(draws)) {}

  // The client announces all chunks of its own update.
  void keep(ClientId client, const ServerlessPart::Object& update) {
    shells_.announce(client, {update, swarm::ChunkSet::full(update->manifest().chunk_count())});
  }
  // Returns what the client does; empty if it has nothing to do.
  std::string step(ClientId client) {
    ServerlessPart& part = shells_.puppet(client).part();
    if (!part.request) return {};
    if (one_in(60)) return report(client, Digest{9}), "report unknown";
    if (one_in(80) && (!part.order || others_have_order(client, part.request->task())))
      return say_made(client, part.other_model()), "wrong model";
    if (part.planned && !one_in(10)) return open_warmup(client);
    if (!part.sprays.empty() && !one_in(8)) return spray(client);
    if (!part.ordered.empty() && !one_in(4)) return gain(client, part.ordered.front().object, false);
    if (part.made && one_in(2)) return serve(client);
    if (part.order && !part.made && !one_in(3)) return aggregate(client);
    if (part.made && (!part.sent_made || one_in(12))) return say_made(client, part.made), "made";
    std::vector<protocol::ObjectId> rest;
    for (const auto& [id, reported] : part.told)
      if (!reported || one_in(20)) rest.push_back(id);
    if (rest.empty()) return {};
    if (one_in(3)) return catch_up(client, rest);
    const protocol::ObjectId id = rest[below(rest.size())];
    if (const auto* has = shells_.disks().find(client, id); has == nullptr || !has->has.complete())
      return gain(client, id, one_in(2));
    return report(client, id), "report";
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draws_.below(bound)); }
  bool one_in(std::size_t number) { return below(number) == 0; }

  // The client announces what it has of each update, its own one whole.
  std::string open_warmup(ClientId client) {
    ServerlessPart& part = shells_.puppet(client).part();
    part.planned = false;
    const auto own = part.update_for(*part.request);
    for (const auto& [id, reported] : std::map(part.told)) {
      const auto& bytes = shells_.updates().at(id);
      const std::size_t chunks = bytes->manifest().chunk_count();
      if (shells_.disks().find(client, id) == nullptr)
        shells_.announce(client,
                         {bytes, bytes == own ? swarm::ChunkSet::full(chunks) : swarm::ChunkSet(chunks)});
    }
    return "open warm-up";
  }
  // Another client gets a chunk of this one's update.
  std::string spray(ClientId client) {
    ServerlessPart& part = shells_.puppet(client).part();
    const protocol::WarmupSlot::Spray spray = part.sprays.back();
    part.sprays.pop_back();
    const auto own = part.update_for(*part.request);
    const auto* has = shells_.disks().find(spray.to, own->manifest().id());
    if (has == nullptr || !shells_.puppet(spray.to).here) return "spray in vain";
    ClientDisks::Object object = *has;
    object.has.add(spray.chunk);
    shells_.announce(spray.to, std::move(object));
    return "spray";
  }
  // The client gets all updates and reports them.
  std::string catch_up(ClientId client, const std::vector<protocol::ObjectId>& rest) {
    for (const protocol::ObjectId& id : rest) {
      gain(client, id, true);
      if (shells_.puppet(client).here) report(client, id);
    }
    return "catch up";
  }
  // The client gets chunks of an update, those that a warm-up's tracker has ordered first.
  std::string gain(ClientId client, const protocol::ObjectId& id, bool all) {
    std::vector<protocol::Chunk>& ordered = shells_.puppet(client).part().ordered;
    const auto* former = shells_.disks().find(client, id);
    const auto bytes = shells_.updates().at(id);
    ClientDisks::Object object{bytes, swarm::ChunkSet(bytes->manifest().chunk_count())};
    if (former != nullptr) object.has = former->has;
    for (std::size_t chunk = 0; chunk < object.has.size(); ++chunk) {
      const bool wanted =
          std::ranges::find(ordered, protocol::Chunk{id, static_cast<std::uint32_t>(chunk)}) != ordered.end();
      if (all || (ordered.empty() ? one_in(3) : wanted)) object.has.add(chunk);
    }
    std::erase_if(ordered, [&](const protocol::Chunk& chunk) { return chunk.object == id; });
    shells_.announce(client, std::move(object));
    return all ? "gain" : "gain some";
  }
  void report(ClientId client, const protocol::ObjectId& id) {
    ServerlessPart& part = shells_.puppet(client).part();
    const TaskId task = part.request->task();
    protocol::UpdateHeld held{
        .run = part.request->run, .round = task.round, .track = task.track, .object = id};
    held.sound = !one_in(8);
    if (!held.sound) held.reason = "a value is not finite";
    if (part.told.contains(id)) part.told[id] = true;
    shells_.tell(client, held);
  }
  // The client computes its model, usually the right one. A coordinator of a simulation assumes that the
  // model of a majority is right, so a lone client does not lie.
  std::string aggregate(ClientId client) {
    ServerlessPart& part = shells_.puppet(client).part();
    const auto model = shells_.model(part.request->model.id());
    if (model == nullptr) return {};
    part.lies = others_have_order(client, part.request->task()) && one_in(10);
    part.made = part.lies ? part.other_model() : part.aggregate(model, shells_.updates());
    if (!part.made) return {};
    if (!one_in(4)) announce(client);
    say_made(client, part.made);
    return "aggregate";
  }
  bool others_have_order(ClientId self, TaskId task) {
    for (std::uint32_t i = 0; i < shells_.scene().config.task.data.partition.clients; ++i) {
      const ServerlessPart& other = shells_.puppet(ClientId(i)).part();
      if (ClientId(i) != self && other.order && other.order->task() == task) return true;
    }
    return false;
  }
  void say_made(ClientId client, const ServerlessPart::Object& model) {
    ServerlessPart& part = shells_.puppet(client).part();
    const TaskId task = part.request->task();
    if (model == part.made) part.sent_made = true;
    shells_.tell(
        client,
        protocol::AggregateMade{
            .run = part.request->run, .round = task.round, .track = task.track, .model = model->manifest()});
  }
  void announce(ClientId client) {
    const auto& made = shells_.puppet(client).part().made;
    shells_.announce(client, {made, swarm::ChunkSet::full(made->manifest().chunk_count())});
  }
  // The coordinator gets chunks of the client's model, or it does not.
  std::string serve(ClientId client) {
    const auto made = shells_.puppet(client).part().made;
    const bool announced = shells_.disks().find(client, made->manifest().id()) != nullptr;
    if (!announced) return announce(client), "announce";
    if (!shells_.daemon().seen.asked.contains(client)) return {};
    const auto fault = fault_of(client, made->manifest());
    shells_.puppet(client).fresh_link = false;
    shells_.answer_requests(client, *made, fault);
    return fault ? "fail to serve: " + fault->message : "serve";
  }
  // Only faults that lose the whole model, so that it does not matter which chunks were requested first.
  std::optional<Error> fault_of(ClientId client, const protocol::Manifest& made) {
    const auto arrived = shells_.model(made.id());
    for (std::size_t chunk = 0; arrived && chunk < made.chunk_count(); ++chunk)
      if (arrived->has(chunk)) return std::nullopt;
    if (one_in(10)) return LentChunks::full();
    if (made.chunk_count() > 2 || !shells_.puppet(client).fresh_link || !one_in(6)) return std::nullopt;
    return Error{ErrorCode::kCorrupt, "a chunk does not match its hash"};
  }

  TwoShells& shells_;
  Rng draws_;
};

}  // namespace fedge::server::shells
