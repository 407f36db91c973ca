#include "server/directory/announcer.h"

#include <algorithm>
#include <utility>

namespace fedge::server {

Announcer::Announcer(Options options) : options_(std::move(options)) {
  say(dht::Announcement{.addresses = options_.addresses, .run_name = {}, .run = {}}, RunId());
}

void Announcer::refresh() {
  const Time now = options_.now();
  for (auto& [key, said] : said_)
    if (now >= said.next || said.next - now > kEvery) publish(said);  // the calendar may have been put back
}

void Announcer::set_runs(const std::vector<Run>& runs) {
  if (runs == runs_) return;
  const auto is_left_out = [&](const Run& run) {
    return std::find(runs.begin(), runs.end(), run) == runs.end();
  };
  for (const Run& old : runs_) {
    if (!is_left_out(old)) continue;
    std::erase_if(said_, [&](const auto& item) { return item.second.run == old.id; });
    std::erase_if(holders_, [&](const auto& item) { return item.first.first == old.id; });
  }
  for (const Run& run : runs)
    say(dht::Announcement{.addresses = options_.addresses, .run_name = run.name, .run = run.id}, run.id);
  runs_ = runs;
}

void Announcer::set_model(RunId run, TrackId track, std::pair<RoundNumber, const protocol::Manifest&> model) {
  const protocol::ObjectId object = model.second.id();
  say(dht::ModelPointer{.run = run,
                        .track = track,
                        .round = model.first,
                        .manifest = object,
                        .size = Bytes(model.second.payload_size)},
      run);
  dht::PeerList holders{.object = object, .peers = {}};
  for (const protocol::Address& address : options_.addresses)
    holders.peers.push_back({address, options_.key.public_key()});
  // Nobody is asked for the former model any more.
  const dht::Key key = dht::peers_key(object);
  const auto former = holders_.find({run, track});
  if (former != holders_.end() && former->second != key) said_.erase(former->second);
  holders_[{run, track}] = key;
  say(holders, run);
}

void Announcer::say(const dht::Content& content, RunId run) {
  Said& said = said_[dht::key_of(content, options_.key.public_key())];
  if (said.next != Time{} && said.content == content) return;
  said.content = content;
  said.run = run;
  publish(said);
}

void Announcer::publish(Said& said) {
  const Time now = options_.now();
  said.next = now + kEvery;
  const auto trouble = [this](const std::string& reason) {
    if (std::exchange(trouble_, reason) == reason || reason.empty()) return;
    options_.on_event(Event{Severity::kWarning, "directory.not_announced", {}}.with("reason", reason));
  };
  const auto record = dht::make_record(options_.key, {sequences_.next(now), now + kLifetime}, said.content);
  if (!record) return trouble(record.error().message);
  options_.directory.publish(
      *record, [trouble](const Result<void>& kept) { trouble(kept ? std::string() : kept.error().message); });
}

}  // namespace fedge::server
