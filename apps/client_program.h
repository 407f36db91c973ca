// fedge-client as a function, for programs with additional parts: register them, then call it.
#pragma once

#include <string>

namespace fedge::apps {

// Takes main()'s arguments and returns its exit code. Messages begin with the program's own name, argv[0].
int client_main(int argc, char** argv);
// The same under another name: "custom-sim client".
int client_main_as(const std::string& program, int argc, char** argv);

}  // namespace fedge::apps
