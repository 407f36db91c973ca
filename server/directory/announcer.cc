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
    if (now >= said.next || said.next - now > kEvery)
      publish(said);  // the calendar clock may have been set back
  for (auto& [track, model] : models_) say_latest(model);
}

void Announcer::set_runs(const std::vector<Run>& runs) {
  if (runs == runs_) return;
  const auto is_left_out = [&](const Run& run) {
    return std::find(runs.begin(), runs.end(), run) == runs.end();
  };
  for (const Run& old : runs_) {
    if (!is_left_out(old)) continue;
    std::erase_if(said_, [&](const auto& item) { return item.second.run == old.id; });
    std::erase_if(models_, [&](const auto& item) { return item.first.first == old.id; });
  }
  forget_former_models();
  for (const Run& run : runs)
    say(dht::Announcement{.addresses = options_.addresses, .run_name = run.name, .run = run.id}, run.id);
  runs_ = runs;
}

void Announcer::set_model(RunId run, TrackId track, std::pair<RoundNumber, const protocol::Manifest&> model) {
  Model& kept = models_[{run, track}];
  kept.latest = {.run = run,
                 .track = track,
                 .round = model.first,
                 .manifest = model.second.id(),
                 .size = Bytes(model.second.payload_size)};
  say_latest(kept);
}

void Announcer::say_latest(Model& model) {
  if (model.said == model.latest) return;
  const Time now = options_.now();
  if (model.said && now >= model.when && now - model.when < kModelEvery) return;
  model = {model.latest, model.latest, now};
  forget_former_models();
  say(model.latest, model.latest.run);
  dht::PeerList holders{.object = model.latest.manifest, .peers = {}};
  for (const protocol::Address& address : options_.addresses)
    holders.peers.push_back({address, options_.key.public_key()});
  say(holders, RunId());  // no run: the holders do not depend on whose model it is
}

// Stops announcing the holders of former models: clients no longer look for them.
void Announcer::forget_former_models() {
  std::erase_if(said_, [this](const auto& item) {
    const auto* holders = std::get_if<dht::PeerList>(&item.second.content);
    return holders != nullptr && std::none_of(models_.begin(), models_.end(), [&](const auto& model) {
             return model.second.said && model.second.said->manifest == holders->object;
           });
  });
}

void Announcer::say(const dht::Content& content, RunId run) {
  Said& said = said_[dht::key_of(content, options_.key.public_key())];
  if (said.next != Time{} && said.content == content) return;
  said.content = content;
  said.run = run;
  publish(said);
}

void Announcer::withdraw() {
  for (auto& [key, said] : said_) publish(said, seconds(1));
}

void Announcer::publish(Said& said, Duration lifetime) {
  const Time now = options_.now();
  said.next = now + kEvery;
  const auto trouble = [this](const std::string& reason) {
    if (std::exchange(trouble_, reason) == reason || reason.empty()) return;
    options_.on_event(Event{Severity::kWarning, "directory.announce_failed", {}}.with("reason", reason));
  };
  const auto record = dht::make_record(options_.key, {sequences_.next(now), now + lifetime}, said.content);
  if (!record) return trouble(record.error().message);
  options_.directory.publish(
      *record, [trouble](const Result<void>& kept) { trouble(kept ? std::string() : kept.error().message); });
}

}  // namespace fedge::server
