// docs/reference/admin-api.md, from the tables that dispatch and check requests.
#include <string_view>

#include "server/api/detail/call.h"

namespace fedge::server {
namespace {

constexpr const char* kBeginning = R"md(# Admin API

After this page you can write a program that manages a coordinator. `fedge reference api --markdown` prints this page,
and `fedge reference openapi` prints the same as an OpenAPI 3.1 document, which a coordinator also serves at
`/api/v1/openapi.json`. [Manage a coordinator](../operate/admin.md) shows how to create users and access tokens.

- All paths begin with `/api/v1`. Bodies and answers are JSON.
- Over HTTPS, each request needs the header `Authorization: Bearer TOKEN`. Through the Unix socket `admin.sock` in the
  data directory, the coordinator's own user and root are administrators.
- An answer with a status of 400 or more is a `Problem`: `detail` says what is wrong and what would be right.
- Lists come in pages: `items`, and `next`. To get the next page, repeat the request with the parameter `after` set to
  `next`; null means that there are no more items.
- `GET` answers have an `ETag`. `If-None-Match` with that tag gives 304 if nothing has changed. `If-Match` with that tag
  on a `PATCH` gives 412 if somebody else was faster.
- `POST /runs` with a header `Idempotency-Key` submits one run, however often it is repeated.
- A role that is needed "everywhere" must be given in the project `*`. Any other role must be given in the project of
  the run, client or token. Objects of other projects do not exist for the sender.
- Limits: a header of 16 KiB; a body of 64 KiB or, with a run file, of 4 MiB; 10 seconds for each 256 KiB; ten wrong
  tokens a minute from an address.

```sh example
curl --unix-socket /var/lib/fedge/admin.sock http://localhost/api/v1/runs
curl --cacert api-cert.pem -H "Authorization: Bearer $(cat token.txt)" https://fedge.example.org:7434/api/v1/runs
```

## Events

`GET /events` stays open and sends what happens as a `text/event-stream`: the events of
[the log](events.md) from severity info on, with their fields as JSON, and two more. `round` has the number of the run,
and as `metrics` the round's line of `metrics.jsonl`. `progress` has the number of tasks of a run by stage, at most
once a second. A user gets the events of runs and clients of projects in which it is a viewer. Events of the whole
coordinator, and of runs that it does not execute, go only to viewers of all projects.

A reader that was cut off sends the `id` of the last event as the header `Last-Event-ID`. If events were dropped
meanwhile, as after a restart of the coordinator, the first one is named `gap`: read the lists again.

```sh example
curl -N --unix-socket /var/lib/fedge/admin.sock "http://localhost/api/v1/events?names=round,progress"
```

## Requests

| request | role | meaning |
| --- | --- | --- |
)md";

std::string linked(std::string_view type) {
  std::string name(type);
  const bool optional = name.ends_with('?');
  if (optional) name.pop_back();
  const bool list = name.ends_with("[]");
  if (list) name.resize(name.size() - 2);
  std::string text = name;
  if (const Schema* schema = find_schema(name)) {
    std::string anchor;
    for (const char* c = schema->name; *c != '\0'; ++c)
      anchor += *c >= 'A' && *c <= 'Z' ? static_cast<char>(*c - 'A' + 'a') : *c;
    text = "[" + name + "](#" + anchor + ")";
  }
  if (name == "strings" || name == "integers") text = "list of " + name;
  if (list) text = "list of " + text;
  return optional ? text + " or null" : text;
}

std::string details_of(const ApiRoute& route) {
  std::string text = std::string(route.summary) + ".";
  if (*route.body != '\0') text += " Body: " + linked(route.body) + ".";
  for (const Parameter& parameter : route.query)
    text += std::string(" `") + parameter.name + "`: " + parameter.doc + ".";
  return text + " Answer: " +
         (route.stream ? "[events](#events)"
          : route.file ? "the file"
                       : linked(route.answer)) +
         ".";
}

}  // namespace

std::string api_reference() {
  std::string page = kBeginning;
  for (const ApiRoute& route : all_routes())
    page += std::string("| `") + route.method + " " + route.path + "` | " + name_of(route.role) +
            (route.everywhere ? " everywhere" : "") + " | " + details_of(route) + " |\n";
  page += "\n## Objects\n";
  for (const Schema& schema : api_schemas()) {
    page += std::string("\n### ") + schema.name + "\n\n" + schema.doc + ".\n";
    if (schema.fields.empty()) continue;
    page += "\n| field | type | meaning |\n| --- | --- | --- |\n";
    for (const FieldDoc& field : schema.fields)
      page += std::string("| `") + field.name + "` | " + linked(field.type) +
              (field.required ? "" : ", optional") + " | " + field.doc + " |\n";
  }
  return page;
}

}  // namespace fedge::server
