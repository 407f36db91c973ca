#include "server/api/event_streams.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/crypto/random.h"
#include "core/text.h"
#include "protocol/session/loop.h"

namespace fedge::server {
namespace {

constexpr std::chrono::seconds kCheckAgain{1};
constexpr std::size_t kAtOnce = 500;  // events
constexpr std::size_t kEpochBytes = 4;
constexpr std::size_t kMostNames = 64;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

EventStreams::EventStreams(boost::asio::io_context& io, std::shared_ptr<Live> live, Authenticate authenticate,
                           Duration pause)
    : io_(io),
      live_(std::move(live)),
      authenticate_(std::move(authenticate)),
      epoch_(random_hex(kEpochBytes)),
      timer_(io),
      pause_(pause),
      batch_(io) {}

void EventStreams::start() {
  live_->feed.listen([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->wake();
  });
}

void EventStreams::stop() {
  live_->feed.listen({});
  timer_.cancel();
  batch_.cancel();
  waiting_ = true;  // for nothing: nothing is sent any more
  for (const auto& watcher : std::exchange(watchers_, {}))
    if (watcher->stream) watcher->stream->end();
}

Result<HttpResponse> EventStreams::open(const HttpRequest& request, const Principal& sender) {
  const auto of_user = std::ranges::count_if(
      watchers_, [&](const auto& one) { return one->sender.actor.name == sender.actor.name; });
  if (watchers_.size() >= kMost || static_cast<std::size_t>(of_user) >= kMostOfUser)
    return Error{ErrorCode::kResource, "too many streams of events are open: at most " +
                                           std::to_string(kMostOfUser) + " of a user and " +
                                           std::to_string(kMost) + " in all"};
  const auto watcher = std::make_shared<Watcher>();
  watcher->request = request;
  watcher->sender = sender;
  const std::string query = request.query();
  for (std::size_t begin = 0; begin < query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string one = query.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string name = one.substr(0, equals);
    const auto value = percent_decoded(one.substr(std::min(equals + 1, one.size())), /*plus_is_space=*/true);
    if (!value) return invalid("the query of the request has an incomplete escape");
    if (name == "run") {
      watcher->run = whole_number(*value);
      if (!watcher->run)
        return invalid("the parameter run must be a number, not '" + clean_text(*value, 80) + "'");
    } else if (name == "names") {
      watcher->names = split_at_commas(*value);
      if (watcher->names.size() > kMostNames)
        return invalid("the parameter names has more than " + std::to_string(kMostNames) + " names");
    } else {
      return invalid("the request has an unknown parameter '" + clean_text(name, 80) +
                     "'; known parameters: run names");
    }
  }
  watcher->seen = live_->feed.last();
  if (const std::string* last = request.field("last-event-id")) {
    const std::size_t dash = std::min(last->find('-'), last->size());
    const auto number = whole_number(std::string_view(*last).substr(std::min(dash + 1, last->size())));
    const bool known = last->substr(0, dash) == epoch_ && number && *number <= watcher->seen;
    watcher->gap = !known;
    if (known) watcher->seen = *number;
  }
  const auto begin = [weak = weak_from_this(), watcher](std::shared_ptr<EventStream> stream) {
    const auto self = weak.lock();
    if (!self) return stream->end();
    watcher->stream = std::move(stream);
    watcher->stream->send(": events of " + watcher->sender.actor.name + "\n\n");
    if (!self->serve(*watcher)) return;
    self->watchers_.push_back(watcher);
    if (!self->checking_) self->check_again();
  };
  return HttpResponse{.content_type = "text/event-stream", .stream = begin};
}

// Called on the coordinator's thread; many events may cause one look.
void EventStreams::wake() {
  if (woken_.exchange(true)) return;
  protocol::post(io_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->woken_ = false;
    self->send_soon();
  });
}

void EventStreams::send_soon() {
  if (waiting_) return;
  const auto pause = std::chrono::ceil<std::chrono::steady_clock::duration>(pause_);
  if (!sent_ || std::chrono::steady_clock::now() - *sent_ >= pause) return send();
  waiting_ = true;
  batch_.at(*sent_ + pause, protocol::weakly(this, [this] {
    waiting_ = false;
    send();
  }));
}

void EventStreams::send() {
  sent_ = std::chrono::steady_clock::now();
  std::erase_if(watchers_, [this](const auto& watcher) { return !serve(*watcher); });
}

void EventStreams::check_again() {
  std::erase_if(watchers_, [this](const auto& watcher) { return !admits(*watcher); });
  checking_ = !watchers_.empty();
  if (checking_) timer_.after(kCheckAgain, protocol::weakly(this, [this] { check_again(); }));
}

bool EventStreams::admits(Watcher& watcher) {
  if (!watcher.stream->is_open()) return false;
  auto sender = authenticate_(watcher.request);
  if (auto* known = std::get_if<Principal>(&sender)) {
    watcher.sender = std::move(*known);
    return true;
  }
  watcher.stream->end();
  return false;
}

bool EventStreams::serve(Watcher& watcher) {
  if (!watcher.stream->is_open()) return false;
  for (;;) {
    const EventFeed::Part part = live_->feed.after(watcher.seen, kAtOnce);
    std::string text;
    if (std::exchange(watcher.gap, false) || part.gap) text += "event: gap\ndata: {}\n\n";
    for (const FeedEvent& event : part.events) {
      watcher.seen = event.id;
      if (!wants(watcher, event)) continue;
      text += "id: " + epoch_ + "-" + std::to_string(event.id) + "\nevent: " + event.name +
              "\ndata: " + event.data + "\n\n";
    }
    if (!text.empty() && !watcher.stream->send(std::move(text))) return false;
    if (part.events.size() < kAtOnce) return true;
  }
}

bool EventStreams::wants(const Watcher& watcher, const FeedEvent& event) {
  const bool seen = event.project.empty() ? watcher.sender.may_everywhere(Role::kViewer)
                                          : watcher.sender.may(Role::kViewer, event.project);
  const bool fits =
      !watcher.run || (event.run && static_cast<std::uint64_t>(event.run->value()) == *watcher.run);
  return seen && fits &&
         (watcher.names.empty() || std::ranges::find(watcher.names, event.name) != watcher.names.end());
}

}  // namespace fedge::server
