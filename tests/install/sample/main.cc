#include "devices/tensor.h"

int main() { return troupe::Tensor::Vector<float>({1, 2}).num_elements() == 2 ? 0 : 1; }
