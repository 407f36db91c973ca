// The record of a shell: the inputs of its engine, what it sends, what it reports and what it produces.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/time.h"
#include "protocol/codec.h"
#include "server/report/metrics.h"

namespace fedge::server::shells {

struct Observed {
  std::vector<std::string> inputs;  // records of the journal
  std::map<ClientId, std::vector<protocol::Message>> sent;
  std::vector<std::string> events;
  std::vector<std::string> rounds;         // lines of metrics, without times and traffic
  std::map<ClientId, std::size_t> served;  // objects that each connected client may fetch
  std::set<ClientId> asked;                // clients that the coordinator has requested chunks from
  std::vector<ClientId> unasked;           // senders of messages that nobody asked for
  std::optional<Time> deadline;
  bool over = false;

  void report(const Event& event) {
    // The waiting report has a time of its own in each shell.
    if (event.name != "round.waiting") events.push_back(to_string(event));
  }
  void add_round(RoundMetrics metrics) {
    metrics.bytes_up = metrics.bytes_down = 0;
    metrics.virtual_seconds = metrics.wall_seconds = 0;
    rounds.push_back(to_json(metrics));
  }
};

// Returns the first difference between the coordinator's shell and the other one; empty if there is none.
inline std::string difference(const Observed& a, const Observed& b) {
  const auto lists = [](const char* what, const auto& one, const auto& other,
                        const auto& text) -> std::string {
    for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
      const std::string mine = i < one.size() ? text(one[i]) : "nothing";
      const std::string theirs = i < other.size() ? text(other[i]) : "nothing";
      if (mine != theirs) return std::string(what) + " " + std::to_string(i) + ": " + mine + " / " + theirs;
    }
    return {};
  };
  const auto plain = [](const std::string& line) { return line; };
  const auto named = [](const protocol::Message& message) {
    // The coordinator hides the reason of a run that has failed.
    if (std::holds_alternative<protocol::RunEnded>(message)) return std::string("run_ended");
    return std::string(protocol::name_of(message)) + " " +
           to_hex(sha256(protocol::encode(message))).substr(0, 12);
  };
  const auto hex = [](const std::string& bytes) {
    return "input " + std::to_string(bytes.size()) + " bytes " + to_hex(sha256(bytes)).substr(0, 12);
  };
  if (auto found = lists("event", a.events, b.events, plain); !found.empty()) return found;
  if (auto found = lists("input", a.inputs, b.inputs, hex); !found.empty()) return found;
  for (const auto* either : {&a.sent, &b.sent})
    for (const auto& [client, messages] : *either) {
      const auto of = [client = client](const Observed& shell) {
        const auto found = shell.sent.find(client);
        return found != shell.sent.end() ? found->second : std::vector<protocol::Message>();
      };
      const std::string what = "message to " + std::to_string(client.value());
      if (auto found = lists(what.c_str(), of(a), of(b), named); !found.empty()) return found;
    }
  if (auto found = lists("round", a.rounds, b.rounds, plain); !found.empty()) return found;
  for (const auto* either : {&a.served, &b.served})
    for (const auto& [client, objects] : *either) {
      const auto of = [client = client](const Observed& shell) {
        const auto found = shell.served.find(client);
        return std::to_string(found != shell.served.end() ? found->second : 0);
      };
      if (of(a) != of(b)) return "served to " + std::to_string(client.value()) + ": " + of(a) + " / " + of(b);
    }
  const auto number = [](ClientId client) { return std::to_string(client.value()); };
  if (auto found = lists("unasked", a.unasked, b.unasked, number); !found.empty()) return found;
  const std::vector<ClientId> asked(a.asked.begin(), a.asked.end());
  const std::vector<ClientId> asked_there(b.asked.begin(), b.asked.end());
  if (asked.size() != asked_there.size()) return lists("asked", asked, asked_there, number);
  if (a.deadline != b.deadline) {
    const auto text = [](const std::optional<Time>& time) {
      return time ? std::to_string(to_seconds(*time)) : std::string("none");
    };
    return "deadline: " + text(a.deadline) + " / " + text(b.deadline);
  }
  return a.over == b.over ? "" : std::string("over: ") + (a.over ? "yes / no" : "no / yes");
}

}  // namespace fedge::server::shells
