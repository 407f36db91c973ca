// fedge-sim as a function, for programs that bring parts of their own: register them, then call it. The
// program is a coordinator with the same parts too: PROGRAM coordinator, with the options of
// fedge-coordinator.
#pragma once

namespace fedge::apps {

// Takes main()'s arguments and returns its exit code.
int sim_main(int argc, char** argv);

}  // namespace fedge::apps
