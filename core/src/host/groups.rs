//! Control groups: the folders of the ones that this process is in.

use std::path::Path;

/// Where control groups are mounted.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The text that names a process's own ones.
pub const OWN: &str = "/proc/self/cgroup";

/// Visits the folders of the groups of `groups`, the text of /proc/self/cgroup, that a controller may limit, each before those above
/// it, and says whether they are of version 1. In a container the group's own path is often not mounted; what is mounted as the
/// root then is the group.
pub fn visit(groups: &str, root: &Path, controller: &str, visit: &mut dyn FnMut(&Path, bool)) {
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        // Version 2 has one hierarchy without a name, version 1 one for each controller.
        let first = !controllers.is_empty();
        if first && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let root = if first { root.join(controller) } else { root.to_path_buf() };
        let mut folder = root.join(path.trim_start_matches('/'));
        while folder.starts_with(&root) {
            visit(&folder, first);
            if !folder.pop() {
                break;
            }
        }
    }
}
