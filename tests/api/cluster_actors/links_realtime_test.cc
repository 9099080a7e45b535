// Monitors and links between the processes of a cluster: who hears of whose end.
#include <signal.h>

#include "tests/api/cluster_actors/cluster_actors.h"

namespace troupe {
namespace {

/// What the actor hears of somebody's end, in order.
using Exits = std::vector<std::pair<caf::actor_addr, caf::error>>;
/// Links itself with whom it is told, says so, and outlives all but kills.
caf::behavior Linker(caf::event_based_actor* self) {
  auto exits = std::make_shared<Exits>();
  self->set_exit_handler(
      [exits](const caf::exit_msg& exit) { exits->emplace_back(exit.source, exit.reason); });
  return {[self](caf::link_atom, const caf::actor& other) { self->link_to(other); },
          [self](caf::unlink_atom, const caf::actor& other) { self->unlink_from(other); },
          [exits](caf::get_atom) {
            const auto [source, reason] = exits->empty() ? Exits::value_type() : exits->front();
            return std::make_tuple(static_cast<int64_t>(exits->size()), reason);
          }};
}

/// What ends of its peers a `Linker` of `system` has heard of, once there is one: their number and
/// the first one's reason.
std::pair<int64_t, caf::error> ExitsOf(caf::actor_system& system, const caf::actor& linker) {
  std::pair<int64_t, caf::error> heard;
  caf::scoped_actor self(system);
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  do {
    self->request(linker, caf::infinite, caf::get_atom_v)
        .receive(
            [&](int64_t number, const caf::error& reason) {
              heard = {number, reason};
            },
            [&](const caf::error& error) {
              heard = {-1, error};
            });
  } while (heard.first == 0 && Clock::now() < deadline);
  return heard;
}

/// Has `linker` link itself (or unlink), and waits until it has.
template <typename Atom>
void Tell(caf::actor_system& system, const caf::actor& linker, Atom atom, const caf::actor& other) {
  caf::scoped_actor self(system);
  self->request(linker, caf::infinite, atom, other)
      .receive([] {}, [](const caf::error& error) { FAIL() << ToStatus(error); });
}

/// The reasons with which actors end in these tests. CAF hands on a kill as such.
std::vector<caf::error> Ends() {
  return {caf::error(), caf::make_error(caf::sec::runtime_error, std::string("why")),
          caf::make_error(caf::exit_reason::user_shutdown)};
}

TEST_F(ClusterActorsTest, WhoIsKilledIsMissedAtOnceAndWhoIsFrozenInTime) {
  auto node = Join();
  auto task = node->Find<TaskActor>(kTask1, "");
  ASSERT_TRUE(task.ok()) << task.status();
  caf::scoped_actor self(node->system());
  for (const bool killed : {false, true}) {
    self->monitor(*task);
    const auto since = Clock::now();
    kill(workers_[1]->pid(), killed ? SIGKILL : SIGSTOP);
    absl::StatusOr<TaskStatus> status = TaskStatus();
    // It may still answer before the signal reaches it.
    while (status.ok()) status = Ask<TaskStatus>(node->system(), *task, status_atom_v);
    EXPECT_EQ(status.status().code(), absl::StatusCode::kUnavailable) << status.status();
    bool down = false;
    self->receive([&](const caf::down_msg&) { down = true; },
                  caf::after(std::chrono::seconds(5)) >> [] {});
    EXPECT_TRUE(down);
    EXPECT_LT(Clock::now() - since, std::chrono::seconds(killed ? 1 : 5));
    if (!killed) kill(workers_[1]->pid(), SIGCONT);
    if (killed) {
      workers_[1].reset();
      StartTask(1);
    }
    // It is found again; the handle of before stays dead.
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    absl::StatusOr<TaskActor> again = absl::UnknownError("");
    do {
      again = node->Find<TaskActor>(kTask1, "", absl::Seconds(2));
    } while (!again.ok() && Clock::now() < deadline);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(Ask<TaskStatus>(node->system(), *again, status_atom_v).ok());
    EXPECT_FALSE(Ask<TaskStatus>(node->system(), *task, status_atom_v).ok());
    task = again;
  }
}

TEST_F(ClusterActorsTest, WhoIsLinkedWithAnotherProcessHearsOfItsEnd) {
  auto near = Join(0), far = Join(1);
  caf::actor_system &here = near->system(), &there = far->system();
  for (const bool far_links : {false, true}) {
    for (const caf::error& reason : Ends()) {
      SCOPED_TRACE(caf::to_string(reason) + (far_links ? ", linked from there" : ""));
      // Ends with the reason when it is told.
      auto mortal = [reason](caf::event_based_actor* self) -> caf::behavior {
        return {[self](caf::link_atom, const caf::actor& other) { self->link_to(other); },
                [self, reason](caf::tick_atom) { self->quit(reason); }};
      };
      const caf::actor doomed = there.spawn(mortal), linker = here.spawn(Linker);
      auto published = far->Publish("doomed", doomed);
      ASSERT_TRUE(published.ok()) << published.status();
      auto found = near->Find<caf::actor>("", "doomed");
      ASSERT_TRUE(found.ok()) << found.status();
      if (far_links) {
        Tell(here, *found, caf::link_atom_v, linker);
      } else {
        Tell(here, linker, caf::link_atom_v, *found);
      }
      caf::anon_send(*found, caf::tick_atom_v);
      const auto [number, heard] = ExitsOf(here, linker);
      EXPECT_EQ(number, 1);
      EXPECT_EQ(heard, reason);
      // It has ended already.
      const caf::actor late = here.spawn(Linker);
      Tell(here, late, caf::link_atom_v, *found);
      EXPECT_EQ(ExitsOf(here, late), std::make_pair(int64_t{1}, reason));
      caf::anon_send_exit(linker, caf::exit_reason::kill);
      caf::anon_send_exit(late, caf::exit_reason::kill);
    }
  }
}

TEST_F(ClusterActorsTest, LinksEndAsTheyDoWithinAProcess) {
  auto near = Join(0), far = Join(1);
  caf::actor_system &here = near->system(), &there = far->system();
  caf::actor other = there.spawn(Linker);
  auto published = far->Publish("other", other);
  ASSERT_TRUE(published.ok()) << published.status();
  auto found = near->Find<caf::actor>("", "other");
  ASSERT_TRUE(found.ok()) << found.status();

  // Who links itself, and ends at once or when it is unlinked again.
  auto brief = [&](bool unlink) {
    return here.spawn([&, unlink](caf::event_based_actor* self) {
      self->link_to(*found);
      if (unlink) self->unlink_from(*found);
      self->quit(caf::make_error(caf::sec::runtime_error, std::string(unlink ? "un" : "linked")));
    });
  };
  brief(true);
  brief(false);
  const auto heard =
      std::make_pair(int64_t{1}, caf::make_error(caf::sec::runtime_error, std::string("linked")));
  EXPECT_EQ(ExitsOf(there, other), heard);

  // A kill is handed on, also to who would survive all else; not after an unlink.
  const caf::actor tied = here.spawn(Linker), free = here.spawn(Linker);
  for (const caf::actor& linker : {tied, free}) Tell(here, linker, caf::link_atom_v, *found);
  Tell(here, free, caf::unlink_atom_v, *found);
  caf::anon_send_exit(other, caf::exit_reason::kill);
  EXPECT_EQ(ExitsOf(here, tied).first, -1);
  EXPECT_EQ(ToStatus(ExitsOf(here, tied).second).code(), absl::StatusCode::kUnavailable);
  caf::scoped_actor self(here);
  int64_t number = -1;
  self->request(free, caf::infinite, caf::get_atom_v)
      .receive([&](int64_t n, const caf::error&) { number = n; }, [](const caf::error&) {});
  EXPECT_EQ(number, 0);

  // The process leaves: who links itself there hears what monitors do, either way.
  const caf::actor first = here.spawn(Linker);
  caf::actor last = there.spawn(Linker);
  auto last_published = far->Publish("last", last);
  ASSERT_TRUE(last_published.ok()) << last_published.status();
  auto last_found = near->Find<caf::actor>("", "last");
  ASSERT_TRUE(last_found.ok()) << last_found.status();
  Tell(here, free, caf::link_atom_v, *last_found);
  Tell(here, *last_found, caf::link_atom_v, first);
  self->monitor(*last_found);
  { PublishedActor ends = *std::move(published); }
  { PublishedActor ends = *std::move(last_published); }
  other = last = caf::actor();  // of a system that ends
  far.reset();
  caf::error why;
  self->receive([&](const caf::down_msg& down) { why = down.reason; },
                caf::after(std::chrono::seconds(5)) >> [] {});
  EXPECT_EQ(why, caf::make_error(caf::exit_reason::remote_link_unreachable));
  EXPECT_EQ(ExitsOf(here, free), std::make_pair(int64_t{1}, why));
  EXPECT_EQ(ExitsOf(here, first), std::make_pair(int64_t{1}, why));
}

TEST_F(ClusterActorsTest, WhoIsLinkedWithARoleEndsWithItsTask) {
  Scope s = Scope::NewRoot();
  Scope on_1 = s.WithDevice(kTask1);
  Output v =
      ops::VarHandleOp(on_1, ElementType::kFloat, PartialShape({}), {.shared_name = "weight"});
  Node* init = ops::AssignVariableOp(on_1, v, ops::Const(on_1, Tensor::Scalar<float>(1)));
  Output queue = ops::FIFOQueueV2(on_1, {ElementType::kFloat},
                                  {.shapes = {PartialShape({})}, .shared_name = "numbers"});
  Output accumulator = ops::ConditionalAccumulator(on_1, ElementType::kFloat, PartialShape({}),
                                                   {.shared_name = "gradients"});
  Output sum = ops::AccumulatorNumAccumulated(on_1, accumulator);
  Node* put = ops::QueueEnqueueV2(on_1, queue, {ops::Const(on_1, Tensor::Scalar<float>(1))});
  ASSERT_TRUE(s.status().ok()) << s.status();
  auto session = Connect(s.graph());
  ASSERT_TRUE(session->RunTargets({init, put, sum.node}).ok());
  auto node = Join();
  const std::pair<ActorKind, const char*> roles[] = {{ActorKind::kTask, ""},
                                                     {ActorKind::kDevice, "CPU:0"},
                                                     {ActorKind::kVariable, "weight"},
                                                     {ActorKind::kQueue, "numbers"},
                                                     {ActorKind::kAccumulator, "gradients"}};
  std::vector<caf::actor> linked;
  for (const auto& [kind, name] : roles) {
    auto role = node->FindAny(kTask1, kind, name, absl::Seconds(10));
    ASSERT_TRUE(role.ok()) << name << ": " << role.status();
    const caf::actor handle = caf::actor_cast<caf::actor>(*role);
    // One that ends, which no role does on that account, and one that stays.
    for (const bool ends : {true, false}) {
      linked.push_back(node->system().spawn(Linker));
      Tell(node->system(), linked.back(), caf::link_atom_v, handle);
      if (!ends) continue;
      caf::anon_send_exit(linked.back(), caf::exit_reason::kill);
      linked.pop_back();
    }
  }
  // A session is where its client is: another node.
  auto client = Join(1);
  auto local = Session::Create(s.graph());
  ASSERT_TRUE(local.ok()) << local.status();
  auto published =
      client->Publish("model", caf::actor_cast<caf::actor>(MakeSessionActor(
                                   client->system(), std::shared_ptr<Session>(*std::move(local)))));
  ASSERT_TRUE(published.ok()) << published.status();
  auto model = node->Find<caf::actor>("", "model");
  ASSERT_TRUE(model.ok()) << model.status();
  linked.push_back(node->system().spawn(Linker));
  Tell(node->system(), linked.back(), caf::link_atom_v, *model);
  { PublishedActor ends = *std::move(published); }
  client.reset();

  auto size = node->Find<QueueActor>(kTask1, "numbers");
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*Ask<int64_t>(node->system(), *size, size_atom_v), 1);
  kill(workers_[1]->pid(), SIGKILL);
  const auto lost =
      std::make_pair(int64_t{1}, caf::make_error(caf::exit_reason::remote_link_unreachable));
  for (size_t i = 0; i < linked.size(); ++i) {
    EXPECT_EQ(ExitsOf(node->system(), linked[i]), lost) << i;
  }
}

}  // namespace
}  // namespace troupe
