/// The client of such a cluster that trains and saves.
#ifndef TROUPE_TESTS_FAULTS_TRAINING_H_
#define TROUPE_TESTS_FAULTS_TRAINING_H_

#include "tests/faults/client.h"

namespace troupe::faults {

/// Trains with checkpoints in `options.checkpoints`, variables on the parameter server and all else
/// on the worker, and says "in" when there are some. Told "go", it says when it trains again after
/// a loss: "result OK BEGAN ENDED MESSAGE", in the format of `RunClient`; so do the answer to
/// "recover", and its end. It fails if it does not go on from the last checkpoint, or if a step has
/// another loss than when it was made before. The result is the exit status.
int RunTraining(const ClientOptions& options);

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_TRAINING_H_
