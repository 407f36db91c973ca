// fedge-sim as a function, for programs with additional parts: register them, then call it. The program is
// also a coordinator and a client with the same parts: PROGRAM coordinator and PROGRAM client, with the
// options of fedge-coordinator and fedge-client. With --mode concrete, the simulator starts these two.
#pragma once

namespace fedge::apps {

// Takes main()'s arguments and returns its exit code. Messages begin with the program's own name, argv[0].
int sim_main(int argc, char** argv);

}  // namespace fedge::apps
