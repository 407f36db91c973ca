#include "apps/cli/program_doc.h"

namespace fedge::apps {

ProgramDoc client_doc() {
  return {
      "fedge-client",
      {{"",
        "",
        "The client daemon: trains models on this device for the coordinator that it has joined",
        {{"Join the coordinator that created the token", "fedge-client join --token-file token.txt"},
         {"Stay connected and train when asked", "fedge-client run"},
         {"Check connectivity, credentials, clock and disk", "fedge-client doctor"}},
        {},
        {{"Exit codes",
          {{"0", "Success; SIGINT or SIGTERM stopped the daemon"},
           {"1", "The command failed"},
           {"2", "The command line is wrong"}}}}},
       {"join",
        "Commands",
        "Join a coordinator",
        {{"Join with a token in a file", "fedge-client join --token-file token.txt"},
         {"Read the token from standard input", "fedge-client join --token-file - < token.txt"},
         {"Join without a token, after the operator has run 'fedge client add' with this device's key",
          "fedge-client join --bootstrap dht.example.org:4222 --run fashion"}}},
       {"run",
        "Commands",
        "Run the daemon: stay connected and train when asked",
        {{"Run the daemon", "fedge-client run"},
         {"In a container: join with the token unless this device has joined already, then run",
          "fedge-client run --token-file token.txt"},
         {"Train with your own program (docs/reference/trainer-protocol.md)",
          "fedge-client run --trainer \"python3 train.py data.safetensors\""}},
        {"Options may be in a file, as in 'fedge-client run --config client.toml': a line such as data = "
         "[\"wards=/srv/wards\"] in its section "
         "[run] stands for --data wards=/srv/wards. An option on the command line takes precedence."}},
       {"move",
        "Commands",
        "Change the address or the key of this device's coordinator",
        {{"Follow the coordinator to a new address", "fedge-client move fedge.example.org:7433"},
         {"Trust the coordinator's new key, which its operator has told you",
          "fedge-client move --key "
          "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"}},
        {"A coordinator tells its clients of a new address or a new key in advance, so this command is for a "
         "device that was not connected then. Stop the daemon first. The client connects before it changes "
         "anything, and keeps its number."}},
       {"key",
        "Commands",
        "Print this device's public key; create the key if there is none",
        {{"Print the key", "fedge-client key"}}},
       {"status",
        "Commands",
        "Show the identity of this client and what its daemon is doing",
        {{"Show the status", "fedge-client status"},
         {"Show the status as JSON", "fedge-client status --format json"}}},
       {"doctor",
        "Commands",
        "Check connectivity, credentials, clock and disk",
        {{"Check this client", "fedge-client doctor"}},
        {"Exit code 1 means that a check failed and the client cannot take part."}}}};
}

}  // namespace fedge::apps
