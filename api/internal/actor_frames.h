/// What messages to actors of other processes look like on the wire. Not public.
#ifndef TROUPE_API_INTERNAL_ACTOR_FRAMES_H_
#define TROUPE_API_INTERNAL_ACTOR_FRAMES_H_

#include <caf/all.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "devices/tensor.h"
#include "net/wire.h"

namespace troupe {

/// Appends what it is given to `body`. Tensors that are worth it are not copied but appended to
/// `tensors`, which travel beside the frame. What cannot travel is an error. Thread-compatible.
class FrameSerializer final : public caf::serializer {
 public:
  FrameSerializer(caf::execution_unit* context, std::string* body, std::vector<Tensor>* tensors)
      : caf::serializer(context), writer_(body), body_(body), tensors_(tensors) {}

  caf::error Add(const Tensor& tensor);

  caf::error begin_object(uint16_t& number, std::string& name) override;
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(size_t& size) override;
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(size_t size, void* data) override;

 private:
  template <typename T>
  caf::error Put(T value) {
    writer_.Number(value);
    return caf::none;
  }
  caf::error PutString(size_t size, size_t unit, const void* data);
  caf::error apply_impl(int8_t& x) override { return Put(x); }
  caf::error apply_impl(uint8_t& x) override { return Put(x); }
  caf::error apply_impl(int16_t& x) override { return Put(x); }
  caf::error apply_impl(uint16_t& x) override { return Put(x); }
  caf::error apply_impl(int32_t& x) override { return Put(x); }
  caf::error apply_impl(uint32_t& x) override { return Put(x); }
  caf::error apply_impl(int64_t& x) override { return Put(x); }
  caf::error apply_impl(uint64_t& x) override { return Put(x); }
  caf::error apply_impl(float& x) override { return Put(x); }
  caf::error apply_impl(double& x) override { return Put(x); }
  caf::error apply_impl(long double& x) override { return Put(x); }
  caf::error apply_impl(std::string& x) override {
    return PutString(x.size(), sizeof(x[0]), x.data());
  }
  caf::error apply_impl(std::u16string& x) override {
    return PutString(x.size(), sizeof(x[0]), x.data());
  }
  caf::error apply_impl(std::u32string& x) override {
    return PutString(x.size(), sizeof(x[0]), x.data());
  }

  WireWriter writer_;
  std::string* const body_;
  std::vector<Tensor>* const tensors_;
};

/// The reverse. No length is believed that the bytes which are left cannot hold, and values are not
/// nested without end; errors of the bytes are `caf::sec::end_of_stream` and the like.
/// Thread-compatible.
class FrameDeserializer final : public caf::deserializer {
 public:
  /// `tensors` are moved from.
  FrameDeserializer(caf::execution_unit* context, std::string_view bytes,
                    std::vector<Tensor>* tensors)
      : caf::deserializer(context), left_(bytes), tensors_(tensors) {}

  caf::error Take(Tensor* tensor);
  /// Nothing is left.
  bool done() const { return left_.empty() && next_tensor_ == tensors_->size(); }

  caf::error begin_object(uint16_t& number, std::string& name) override;
  caf::error end_object() override;
  caf::error begin_sequence(size_t& size) override;
  caf::error end_sequence() override;
  caf::error apply_raw(size_t size, void* data) override;

 private:
  template <typename T>
  caf::error Get(T& value) {
    return apply_raw(sizeof(T), &value);
  }
  template <typename String>
  caf::error GetString(String& value) {
    size_t size = 0;
    if (caf::error error = GetSize(sizeof(value[0]), &size)) return error;
    value.resize(size);
    return apply_raw(size * sizeof(value[0]), value.data());
  }
  caf::error GetSize(size_t unit, size_t* size);
  caf::error apply_impl(int8_t& x) override { return Get(x); }
  caf::error apply_impl(uint8_t& x) override { return Get(x); }
  caf::error apply_impl(int16_t& x) override { return Get(x); }
  caf::error apply_impl(uint16_t& x) override { return Get(x); }
  caf::error apply_impl(int32_t& x) override { return Get(x); }
  caf::error apply_impl(uint32_t& x) override { return Get(x); }
  caf::error apply_impl(int64_t& x) override { return Get(x); }
  caf::error apply_impl(uint64_t& x) override { return Get(x); }
  caf::error apply_impl(float& x) override { return Get(x); }
  caf::error apply_impl(double& x) override { return Get(x); }
  caf::error apply_impl(long double& x) override { return Get(x); }
  caf::error apply_impl(std::string& x) override { return GetString(x); }
  caf::error apply_impl(std::u16string& x) override { return GetString(x); }
  caf::error apply_impl(std::u32string& x) override { return GetString(x); }

  std::string_view left_;
  std::vector<Tensor>* const tensors_;
  size_t next_tensor_ = 0;
  int depth_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_ACTOR_FRAMES_H_
